#!/usr/bin/env bash
# System calls fail, singly or all of a kind, and resources run out. The program must not crash, hang or see a wrong byte,
# and each marker that was reported as written must be in the file. soak.sh is the long form.
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
# shellcheck source=tests/faults/faults.sh
. "$ROOT/tests/faults/faults.sh"

check "the programs of this suite compile" build_programs
check "system calls can be made to fail on this machine" may_inject
if may_inject >/dev/null 2>&1; then
    for mode in "${MODES[@]}"; do
        check "$mode: when system calls fail at random, the stress program loses no byte" random_of_each "$mode" "$RANDOM" 200
        check "$mode: when one system call fails, a program starts and writes its markers without a crash" nth_of_each nth_failure "$mode" 1 6 20
        check "$mode: when one system call fails, Python and NumPy raise MemoryError and see no wrong byte" nth_of_each python_failure "$mode" 4
        check "$mode: when 60 of 4096 mappings are left, no byte is lost" few_mappings "$mode" 2000
        check "$mode: with vm.overcommit_memory=2, when mappings fail at random, no byte is lost" lost_ranges "$mode" 5000
    done
    check "jemalloc: after a fork while another thread maps new addresses, the child can allocate" slow_mappings jemalloc
fi
if [ "$LIB" = "$ROOT/target/release/libflarena.so" ]; then
    # With little optimization it compiles in half the time. soak.sh has the profile of a release.
    check_defect CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
fi
for mode in "${MODES[@]}"; do
    [ "$mode" != bare ] || continue
    check "$mode: on a full disk markers fail, and each that was reported as written is in the file" full_disk "$mode"
    check "$mode: with 200 MB of addresses malloc works or returns NULL" under_limit "$mode" as 204800000
    check "$mode: with 20 descriptors all markers are written" under_limit "$mode" nofile 20
    check "$mode: with four descriptors all markers are written" under_limit "$mode" nofile 4
    check "$mode: under a file size limit of 512 bytes markers fail without SIGXFSZ" under_limit "$mode" fsize 512
    check "$mode: a marker that crosses the file size limit is removed from the file" under_limit "$mode" fsize 1536
    check "$mode: with vm.overcommit_memory=2 and a limit on data no byte is lost" no_overcommit "$mode" 5000
    check "$mode: without a governor, a group's limit holds after the program had no descriptor for its first reading" \
        unread_group "$mode"
    check "$mode: a large allocation that cannot fit below the limit of its group fails with FLARENA_AT_LIMIT=fail" \
        refused_at_limit "$mode"
    check "$mode: with FLARENA_AT_LIMIT=fail a program of blocks of 24 MB sees an error where it is killed without" refused_while_bare_is_killed "$mode" 24
    check "$mode: with FLARENA_AT_LIMIT=fail room for a 16th of what another process holds is spared" spares_others "$mode"
    check "$mode: with FLARENA_AT_LIMIT=fail a program of blocks of 2 MB sees an error where it is killed without" refused_while_bare_is_killed "$mode" 2
    check "$mode: before the kernel kills a process, its last line and its last marker name the allocation" last_words "$mode"
    check "$mode: when the kernel kills another process of the control group for its memory, no byte is lost" killed_neighbour "$mode" 5
    check_source "$ROOT/tests/faults/no_memory.c" 1 "$mode: $(sentence_of "$ROOT/tests/faults/no_memory.c")" \
        no_memory "$mode"
    unless_qemu "does not enforce limits" check "$mode: under RLIMIT_AS no call is refused that is granted without the library" grants_as_bare "$mode" as
    unless_qemu "does not enforce limits" check "$mode: under RLIMIT_DATA, set by the program, and without a governor no call is refused that is granted without the library" grants_as_bare "$mode" data FLARENA_GOVERNOR=off
    check "$mode: in a control group no call is killed that succeeds without the library" grants_as_bare "$mode" cgroup
    unless_qemu "does not enforce limits" check "$mode: under a limit on locked memory no call is refused that is granted without the library" grants_as_bare "$mode" locked
    check "$mode: with 60 mappings left no call is refused that is granted without the library" grants_as_bare "$mode" mappings
    check "$mode: when no thread can be started, a large program continues without a governor" under_limit "$mode" nproc 1
    check "$mode: a program killed at a random moment leaves only whole lines in the marker file" killed_while_writing "$mode" 15
done
finish
