#!/usr/bin/env bash
# The system refuses: single calls, all of a kind, whole resources. Never a crash, a hang, a wrong byte, or
# a marker that was reported written and is not in the file. The long form is soak.sh.
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
# shellcheck source=tests/faults/faults.sh
. "$ROOT/tests/faults/faults.sh"

check "the fault programs compile" build_programs
can_inject() {
    may_inject
}
check "single calls can be made to fail here" can_inject
if may_inject >/dev/null 2>&1; then
    for mode in "${MODES[@]}"; do
        check "$mode: the stress program survives calls that fail at random" random_of_each "$mode" "$RANDOM" 200
        check "$mode: a program survives its start and its markers whichever call fails" nth_of_each nth_refusal "$mode" 1 6 20
    done
fi
for mode in "${MODES[@]}"; do
    [ "$mode" != bare ] || continue
    check "$mode: a full disk costs markers, and none that was reported written" full_disk "$mode"
    check "$mode: 200 MB of addresses suffice, or NULL is the answer" under_limit "$mode" v 200000
    check "$mode: 20 descriptors suffice" under_limit "$mode" n 20
    check "$mode: four descriptors suffice" under_limit "$mode" n 4
    check "$mode: a marker file may not grow: no SIGXFSZ" under_limit "$mode" f 1
    check "$mode: no thread may be started" under_limit "$mode" u 1
    check "$mode: killed at any moment, a program leaves whole lines" killed_while_marking "$mode" 15
done
finish
