#!/usr/bin/env bash
# The long form: each call and each error, the first 300 of them one by one, in a program with markers, in
# Python and NumPy, and at random in the stress program. Prints a line for each; stops after MINUTES.
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
        check "$mode: call $n, markers" nth_of_each nth_refusal "$mode" "$n"
        check "$mode: call $n, Python" nth_of_each python_refusal "$mode" "$n"
        check "$mode: few mappings, $n" few_mappings "$mode" 20000
        check "$mode: no overcommit, $n" no_overcommit "$mode" 50000
        check "$mode: a neighbour is killed, $n" killed_neighbour "$mode" 20
        check "$mode: random, seed $n" random_of_each "$mode" "$n" 3000
    done
done
finish
