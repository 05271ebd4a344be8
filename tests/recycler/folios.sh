# shellcheck shell=bash
# Large blocks on pages of 64 KiB: sourced by run.sh. For some seconds the system gives pages of 64 KiB on request, and
# none of 2 MiB, which some other program may then miss; what was set before comes back in any case.
FOLIO_SWITCHES=/sys/kernel/mm/transparent_hugepage
FOLIO_LIMIT_BYTES=$((230 << 20))

restore_folios() {
    echo "$FOLIOS_BEFORE" >$FOLIO_SWITCHES/hugepages-64kB/enabled
    echo "$LARGE_BEFORE" >$FOLIO_SWITCHES/hugepages-2048kB/enabled
    [ -z "${FOLIO_GROUP-}" ] || rmdir "$FOLIO_GROUP"
}

chosen_in() { # FILE
    sed 's/.*\[\(.*\)\].*/\1/' "$1"
}

# A group of this suite's own, by the one interface or the other.
limited_group() {
    local root=/sys/fs/cgroup/memory file=memory.limit_in_bytes
    [ -e $root/$file ] || root=/sys/fs/cgroup file=memory.max
    FOLIO_GROUP=$(mktemp -d $root/flarena-folios-XXXXXX 2>/dev/null) || return
    echo $FOLIO_LIMIT_BYTES >"$FOLIO_GROUP/$file"
}

in_limited_group() { # MODE PROGRAM
    [ -n "${FOLIO_GROUP-}" ] || { echo "no group with a memory limit can be made here"; return 77; }
    (
        echo "$BASHPID" >"$FOLIO_GROUP/cgroup.procs"
        run_program "$1" "$2" FOLIOS_LIMIT=1
    )
}

check_folios() {
    local mode source program run
    compile_all folios
    if under_qemu; then
        skip "large blocks on pages of 64 KiB" "qemu's user mode leaves advice on huge pages out"
        return
    fi
    if [ "$(getconf PAGESIZE)" -ne 4096 ]; then
        skip "large blocks on pages of 64 KiB" "the programs count pages of 4 KiB, and the system's huge pages are not of 2 MiB"
        return
    fi
    if ! [ -w $FOLIO_SWITCHES/hugepages-64kB/enabled ] || ! [ -w $FOLIO_SWITCHES/hugepages-2048kB/enabled ]; then
        skip "large blocks on pages of 64 KiB" "the kernel's switch for them is not there, or not ours to set"
        return
    fi
    FOLIOS_BEFORE=$(chosen_in $FOLIO_SWITCHES/hugepages-64kB/enabled)
    LARGE_BEFORE=$(chosen_in $FOLIO_SWITCHES/hugepages-2048kB/enabled)
    trap 'restore_folios; rm -rf "$SCRATCH"' EXIT
    echo madvise >$FOLIO_SWITCHES/hugepages-64kB/enabled
    echo never >$FOLIO_SWITCHES/hugepages-2048kB/enabled
    limited_group || FOLIO_GROUP=
    for mode in "${MODES[@]}"; do
        for source in folios/*.c; do
            program=$SCRATCH/${source%.c}
            case $source in
                folios/limited.c) run=(in_limited_group "$mode" "$program") ;;
                # What goes back before a block is touched comes again with the 64 KiB at its end: none may go that early.
                folios/returned.c) run=(run_program "$mode" "$program" FLARENA_DECAY_MS=5000) ;;
                *) run=(run_program "$mode" "$program") ;;
            esac
            check "$mode, 64 KiB: $(sentence_of "$source")" "${run[@]}"
        done
    done
    check "it is the setting that asks: $(sentence_of folios/asked.c)" fails_when_off "$SCRATCH/folios/asked"
    restore_folios
    trap 'rm -rf "$SCRATCH"' EXIT
}

fails_when_off() { # PROGRAM
    local status=0
    run_program glibc "$1" FLARENA_HUGE=off || status=$?
    [ "$status" -eq 1 ]
}
