#!/usr/bin/env bash
# The long form: for each system call and error, call 1 to 300 fails in a program with markers and in Python and NumPy, and
# calls fail at random in the stress program. Prints a line for each, and stops after MINUTES.
#
#   tests/faults/soak.sh MINUTES
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
# shellcheck source=tests/faults/faults.sh
. "$ROOT/tests/faults/faults.sh"

end=$((SECONDS + ${1:?MINUTES} * 60))
build_programs || exit 1
may_inject || exit 77
for ((n = 1; n <= 300; n++)); do
    for mode in "${MODES[@]}"; do
        [ "$SECONDS" -lt "$end" ] || break 2
        check "$mode: when call $n fails, a program starts and writes its markers without a crash" nth_of_each nth_failure "$mode" "$n"
        check "$mode: when call $n fails, Python and NumPy raise MemoryError and see no wrong byte" nth_of_each python_failure "$mode" "$n"
        check "$mode: when 60 of 4096 mappings are left, no byte is lost, run $n" few_mappings "$mode" 20000
        check "$mode: with vm.overcommit_memory=2 no byte is lost, run $n" no_overcommit "$mode" 50000
        check "$mode: when another process of the control group is killed, no byte is lost, run $n" killed_neighbour "$mode" 20
        check "$mode: when system calls fail at random, no byte is lost, seed $n" random_of_each "$mode" "$n" 3000
    done
done
finish
