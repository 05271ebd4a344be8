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

in_limited_group() { # MODE PROGRAM
    local status=0
    make_group 230 || return
    (
        echo "$BASHPID" >"$GROUP/cgroup.procs"
        run_program "$1" "$2" FOLIOS_LIMIT=1
    ) || status=$?
    rmdir "$GROUP"
    return "$status"
}

check_folios() {
    local mode source program run
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
        for source in ./*.c; do
            program=$SCRATCH/${source%.c}
            case $source in
                ./limited.c) run=(in_limited_group "$mode" "$program") ;;
                # If slack is purged before the block is touched, the fault on the last 64 KiB brings it back.
                # A long decay prevents that.
                ./returned.c) run=(run_program "$mode" "$program" FLARENA_DECAY_MS=5000) ;;
                *) run=(run_program "$mode" "$program") ;;
            esac
            check "$mode, 64 KiB: $(sentence_of "$source")" "${run[@]}"
        done
    done
    check "fails with FLARENA_HUGE=off: $(sentence_of requested.c)" fails_when_off "$SCRATCH/requested"
    restore_folios
    trap 'rm -rf "$SCRATCH"' EXIT
}

fails_when_off() { # PROGRAM
    local status=0
    run_program glibc "$1" FLARENA_HUGE=off || status=$?
    [ "$status" -eq 1 ]
}

[ "${MODES[0]}" = bare ] || check_folios
finish
