#!/usr/bin/env bash
# The long form. First each single call of each kind fails, in a program with markers and in Python and NumPy. Then, for
# MINUTES, calls fail at random in the stress program. Prints a line for each.
#
#   tests/faults/soak.sh MINUTES
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
# shellcheck source=tests/faults/faults.sh
. "$ROOT/tests/faults/faults.sh"

MOST_CALLS=300
minutes=${1:?MINUTES}
build_programs || exit 1
may_inject || exit 77
for pair in "${PAIRS[@]}"; do
    call=${pair%:*} error=${pair#*:}
    for mode in "${MODES[@]}"; do
        check "$mode: when any one $call fails with $error, a program starts and writes its markers without a crash" \
            each_call_in_turn nth_failure "$mode" "$call" "$error" $MOST_CALLS
        check "$mode: when any one $call fails with $error, Python and NumPy raise MemoryError and see no wrong byte" \
            each_call_in_turn python_failure "$mode" "$call" "$error" $MOST_CALLS
    done
done
check_defect CARGO_PROFILE_RELEASE_LTO=true # as in a release
printf '# %d runs in which one call failed\n' "$(awk '{ sum += $1 } END { print sum }' "$SCRATCH/failed-calls")"
end=$((SECONDS + minutes * 60))
for ((run = 1; SECONDS < end; run++)); do
    for mode in "${MODES[@]}"; do
        check "$mode: when 60 of 4096 mappings are left, no byte is lost, run $run" few_mappings "$mode" 20000
        check "$mode: with vm.overcommit_memory=2 no byte is lost, run $run" no_overcommit "$mode" 50000
        check "$mode: when another process of the control group is killed, no byte is lost, run $run" killed_neighbour "$mode" 20
        check "$mode: when system calls fail at random, no byte is lost, seed $run" random_of_each "$mode" "$run" 3000
    done
done
finish
