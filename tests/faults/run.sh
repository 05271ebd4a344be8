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
        check "$mode: Python and NumPy answer a refused call with MemoryError, and with no wrong byte" nth_of_each python_refusal "$mode" 4
        check "$mode: of 4096 mappings the program leaves 60, and no byte is lost" few_mappings "$mode" 2000
        check "$mode: with vm.overcommit_memory=2 mappings fail at random, and no byte is lost" lost_ranges "$mode" 5000
    done
    check "jemalloc: a fork while another thread's new addresses are mapped leaves the child no lock of it" slow_mappings jemalloc
fi
if [ "$LIB" = "$ROOT/target/release/libflarena.so" ]; then
    check "a library with a defect compiles" build_with_defect
    for mode in glibc jemalloc; do
        check "$mode: $(sentence_of "$ROOT/tests/faults/defect.c")" told_with_defect "$mode" 0 "a call"
        check "$mode: a defect elsewhere ends the program, with a line that names the place" told_with_defect "$mode" 134 "the program" "defect elsewhere"
    done
fi
for mode in "${MODES[@]}"; do
    [ "$mode" != bare ] || continue
    check "$mode: a full disk costs markers, and none that was reported written" full_disk "$mode"
    check "$mode: 200 MB of addresses suffice, or NULL is the answer" under_limit "$mode" as 204800000
    check "$mode: 20 descriptors suffice" under_limit "$mode" nofile 20
    check "$mode: four descriptors suffice" under_limit "$mode" nofile 4
    check "$mode: a marker file may not grow: no SIGXFSZ" under_limit "$mode" fsize 512
    check "$mode: a marker file may grow by two markers and a piece: the piece is taken back" under_limit "$mode" fsize 1536
    check "$mode: memory is not promised twice (vm.overcommit_memory=2), and no byte is lost" no_overcommit "$mode" 5000
    check "$mode: a neighbour in the control group takes too much and is killed, and no byte is lost" killed_neighbour "$mode" 5
    check_source "$ROOT/tests/faults/no_memory.c" "$mode: $(sentence_of "$ROOT/tests/faults/no_memory.c")" no_memory "$mode"
    check "$mode: where no thread may be started, a program with much memory has no governor and goes on" under_limit "$mode" nproc 1
    check "$mode: killed at any moment, a program leaves whole lines" killed_while_marking "$mode" 15
done
finish
