#!/usr/bin/env bash
# Large blocks on pages of 64 KiB. For some seconds the system provides pages of 64 KiB on request and none of 2 MiB, also
# for other programs. The old settings are restored on every exit.
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
cd "$ROOT/tests/folios" || exit 1

FOLIO_SWITCHES=/sys/kernel/mm/transparent_hugepage

restore_folios() {
    echo "$FOLIOS_BEFORE" >$FOLIO_SWITCHES/hugepages-64kB/enabled
    echo "$LARGE_BEFORE" >$FOLIO_SWITCHES/hugepages-2048kB/enabled
}

selected_value() { # FILE
    sed 's/.*\[\(.*\)\].*/\1/' "$1"
}

check_folios() {
    local mode
    compile_all .
    if under_qemu; then
        skip "large blocks on pages of 64 KiB" "qemu's user mode ignores advice on huge pages"
        return
    fi
    if [ "$(getconf PAGESIZE)" -ne 4096 ]; then
        skip "large blocks on pages of 64 KiB" "these programs need pages of 4 KiB and huge pages of 2 MiB"
        return
    fi
    if ! [ -w $FOLIO_SWITCHES/hugepages-64kB/enabled ] || ! [ -w $FOLIO_SWITCHES/hugepages-2048kB/enabled ]; then
        skip "large blocks on pages of 64 KiB" "the kernel has no setting for them, or this user may not change it"
        return
    fi
    FOLIOS_BEFORE=$(selected_value $FOLIO_SWITCHES/hugepages-64kB/enabled)
    LARGE_BEFORE=$(selected_value $FOLIO_SWITCHES/hugepages-2048kB/enabled)
    trap 'restore_folios; rm -rf "$SCRATCH"' EXIT
    echo madvise >$FOLIO_SWITCHES/hugepages-64kB/enabled
    echo never >$FOLIO_SWITCHES/hugepages-2048kB/enabled
    for mode in "${MODES[@]}"; do
        check_tests_of blocks.c "$mode"
        check "$mode: $(sentence_of limited.c)" in_new_group 230 run_program "$mode" "$SCRATCH/limited" FOLIOS_LIMIT=1
    done
    check "fails with FLARENA_HUGE=off: every large block requests pages of 64 KiB" fails_when_off
    restore_folios
    trap 'rm -rf "$SCRATCH"' EXIT
}

fails_when_off() {
    local status=0
    run_program glibc "$SCRATCH/blocks" TEST_LINE="$(line_of blocks.c 'every large block')" FLARENA_HUGE=off || status=$?
    [ "$status" -eq 1 ]
}

[ "${MODES[0]}" = bare ] || check_folios
finish
