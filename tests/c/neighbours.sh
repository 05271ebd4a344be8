# shellcheck shell=bash
# The library beside others: allocators that were there first, late and deep loading, libraries
# that allocate while they load, closed standard files, set-user-id programs.

built() { # NAME: a file of $SCRATCH/neighbours
    printf '%s/neighbours/%s' "$SCRATCH" "$1"
}

compile_neighbours() {
    mkdir -p "$SCRATCH/neighbours"
    local name
    for name in allocates_in_ctor own_malloc fails_to_purge; do
        compile "lib/$name.c" "$(built "$name.so")" -shared -fPIC
    done
    for name in another_malloc deepbind late_dlopen closed_stdio trim_errno; do
        compile "neighbours/$name.c" "$(built "$name")"
    done
    # Libraries find its allocator by all its names.
    compile neighbours/lock_of_its_own.c "$(built lock_of_its_own)" -rdynamic
    gcc "${C_FLAGS[@]}" neighbours/another_malloc.c lib/own_malloc.c -rdynamic -o "$(built with_own_malloc)" -ldl
}

# The allocators of other projects, as Debian packages them.
PEERS=(libjemalloc.so.2:libjemalloc2 libtcmalloc_minimal.so.4:libtcmalloc-minimal4 libmimalloc.so.2:libmimalloc2.0)

peer_is_there() { # LIBRARY PACKAGE
    ldconfig -p | grep -q "$1" || { install_packages "$2" && ldconfig -p | grep -q "$1"; }
}

stands_down_and_says_so() { # MODE
    in_mode "$1" FLARENA_LOG=info "$(built with_own_malloc)" with_own_malloc >"$SCRATCH/told" 2>&1
    cat "$SCRATCH/told"
    [ "$(wc -l <"$SCRATCH/told")" -eq 1 ]
    grep -q 'standing down' "$SCRATCH/told"
}

loads_late() { # MODE
    without_preload NVFLARE_ENABLE_JEMALLOC_PRELOAD="$([ "$1" = jemalloc ] && echo true)" \
        "$(built late_dlopen)" "$LIB"
}

with_closed_stdio() { # MODE [NAME=VALUE...]
    local mode=$1
    shift
    (
        # The program tells by its status alone: it has no stderr to write to.
        exec <&- >&- 2>&-
        run_as "$mode" "$@" "$(built closed_stdio)" "$SCRATCH/closed_stdio.out"
    )
}

secure_program() {
    local place=$SCRATCH/secure output
    if [ "$(id -u)" -ne 0 ] || ! command -v setpriv >/dev/null; then
        echo "needs root and setpriv"
        return 77
    fi
    mkdir -p "$place"
    chmod 711 "$SCRATCH"
    chmod 755 "$place"
    cp "$LIB" "$place/"
    compile neighbours/secure.c "$place/secure" -L "$place" -Wl,--no-as-needed -lflarena "-Wl,-rpath,$place"
    chmod 4755 "$place/secure"
    output=$(without_preload NVFLARE_ENABLE_JEMALLOC_PRELOAD=true FLARENA_LOG=info NVFLARE_CLIENT_MEMORY_PROFILE=1 \
        FLARENA_MARKER_FILE="$place/markers" MALLOC_CONF=nonsense FLARENA_ALLOCATOR=nonsense \
        setpriv --reuid=65534 --regid=65534 --clear-groups "$place/secure" 2>&1) || { echo "$output"; return 1; }
    [ -z "$output" ] || { echo "it said: $output"; return 1; }
    [ ! -e "$place/markers" ] || { echo "a marker file was written"; return 1; }
}

check_neighbours() {
    local mode peer library package order
    compile_neighbours
    for mode in "${MODES[@]}"; do
        check "$mode: a program with a malloc of its own keeps it" \
            run_program "$mode" "$(built with_own_malloc)" -- with_own_malloc
        check "$mode: standing down is told when FLARENA_LOG=info asks" stands_down_and_says_so "$mode"
        check "$mode: an allocator earlier in LD_PRELOAD keeps the process" \
            run_program "$mode" "$(built another_malloc)" LD_PRELOAD="$(built own_malloc.so):$LIB" -- own_malloc.so
        for peer in "${PEERS[@]}"; do
            library=${peer%:*} package=${peer#*:}
            if peer_is_there "$library" "$package"; then
                check "$mode: $library earlier in LD_PRELOAD keeps the process" \
                    run_program "$mode" "$(built another_malloc)" LD_PRELOAD="$library:$LIB" -- "${library%%.*}"
                check "$mode: $library later in LD_PRELOAD leaves the process to flarena" \
                    run_program "$mode" "$SCRATCH/functions/malloc" LD_PRELOAD="$LIB:$library"
            else
                skip "$mode: $library in LD_PRELOAD" "package $package is not there"
            fi
        done
        for order in "$(built allocates_in_ctor.so):$LIB" "$LIB:$(built allocates_in_ctor.so)"; do
            check "$mode: a preloaded library whose constructor allocates, ${order/$SCRATCH*:*/before}" \
                run_program "$mode" "$SCRATCH/functions/malloc" LD_PRELOAD="$order"
        done
        check "$mode: $(sentence_of neighbours/deepbind.c)" \
            run_program "$mode" "$(built deepbind)" -- "$(built allocates_in_ctor.so)"
        check "$mode: the same for blocks of every size with FLARENA_RECYCLE=off" \
            run_program "$mode" "$(built deepbind)" FLARENA_RECYCLE=off -- "$(built allocates_in_ctor.so)"
        check "$mode: $(sentence_of neighbours/late_dlopen.c)" loads_late "$mode"
        check "$mode: $(sentence_of neighbours/lock_of_its_own.c)" run_program "$mode" "$(built lock_of_its_own)"
        check "$mode: $(sentence_of neighbours/trim_errno.c)" \
            run_program "$mode" "$(built trim_errno)" -- "$(built fails_to_purge.so)"
        check "$mode: $(sentence_of neighbours/closed_stdio.c)" with_closed_stdio "$mode"
        check "$mode: the same with markers on and a bad setting to be told of" \
            with_closed_stdio "$mode" NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_DECAY_MS=junk
    done
    unless_qemu "takes a set-user-id program for any other" check "$(sentence_of neighbours/secure.c)" secure_program
}
