# shellcheck shell=bash
# The library beside other code: earlier allocators, dlopen, RTLD_DEEPBIND, libraries that allocate
# while they load, closed standard files, set-user-id programs.

built() { # NAME: the path of a compiled file
    printf '%s/neighbours/%s' "$SCRATCH" "$1"
}

compile_neighbours() {
    mkdir -p "$SCRATCH/neighbours"
    local name
    for name in allocates_in_ctor own_malloc forwards_malloc replaces_libc; do
        compile "lib/$name.c" "$(built "$name.so")" -shared -fPIC
    done
    for name in another_malloc deepbind late_dlopen closed_stdio trim_errno; do
        compile "neighbours/$name.c" "$(built "$name")"
    done
    # -rdynamic exports the program's allocator to libraries, under all its names.
    compile neighbours/atfork_under_lock.c "$(built atfork_under_lock)" lib/own_malloc.c -DINTERNAL_NAMES -rdynamic
    gcc "${C_FLAGS[@]}" neighbours/another_malloc.c lib/own_malloc.c -rdynamic -o "$(built with_own_malloc)" -ldl
}

# The allocators of other projects, as Debian packages them.
PEERS=(libjemalloc.so.2:libjemalloc2 libtcmalloc_minimal.so.4:libtcmalloc-minimal4 libmimalloc.so.2:libmimalloc2.0)

peer_is_installed() { # LIBRARY PACKAGE
    ldconfig -p | grep "$1" || { install_packages "$2" && ldconfig -p | grep "$1"; }
}

reports_other_malloc() { # MODE
    in_mode "$1" FLARENA_LOG=info "$(built with_own_malloc)" with_own_malloc >"$SCRATCH/messages" 2>&1
    cat "$SCRATCH/messages"
    [ "$(wc -l <"$SCRATCH/messages")" -eq 1 ]
    grep -q 'inactive: another allocator' "$SCRATCH/messages"
}

opened_late() { # MODE
    without_preload NVFLARE_ENABLE_JEMALLOC_PRELOAD="$([ "$1" = jemalloc ] && echo true)" \
        "$(built late_dlopen)" "$LIB"
}

musl_program() { # MODE
    need musl-gcc musl-tools || { echo "musl-tools cannot be installed" && exit 77; }
    musl-gcc -O1 -fno-builtin neighbours/musl.c -o "$(built musl)"
    local COMMAND_TIMEOUT=60 # in_mode reads it
    [ "$(in_mode "$1" "$(built musl)" 2>&1)" = preloaded ]
}

with_replaced_libc() { # MODE LD_PRELOAD
    # shellcheck disable=SC2034  # in_mode reads it
    local COMMAND_TIMEOUT=60
    run_program "$1" "$SCRATCH/functions/malloc" LD_PRELOAD="$2"
    run_program "$1" "$SCRATCH/functions/realloc" LD_PRELOAD="$2"
    run_program "$1" "$SCRATCH/traps/threads" TEST_LINE="$(line_of traps/threads.c 'thread that has ended')" LD_PRELOAD="$2"
}

with_closed_stdio() { # MODE [NAME=VALUE...]
    local mode=$1
    shift
    (
        # Without stderr the program reports by its exit status only.
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
    [ -z "$output" ] || { echo "unexpected output: $output"; return 1; }
    [ ! -e "$place/markers" ] || { echo "a marker file was written"; return 1; }
}

check_neighbours() {
    local mode peer library package
    compile_neighbours
    for mode in "${MODES[@]}"; do
        check "$mode: a program that defines malloc keeps its malloc" \
            run_program "$mode" "$(built with_own_malloc)" -- with_own_malloc
        check "$mode: with FLARENA_LOG=info the library reports that another malloc serves the process" reports_other_malloc "$mode"
        check "$mode: an allocator earlier in LD_PRELOAD, before a space, serves the process" \
            run_program "$mode" "$(built another_malloc)" LD_PRELOAD="$(built own_malloc.so) $LIB" -- own_malloc.so
        check "$mode: an allocator earlier in LD_PRELOAD that passes each call on, under glibc's internal names, too, serves the process" \
            run_program "$mode" "$(built another_malloc)" LD_PRELOAD="$(built forwards_malloc.so):$LIB" -- forwards_malloc.so
        check "$mode: with such an allocator later in LD_PRELOAD flarena serves the process" \
            run_program "$mode" "$SCRATCH/functions/alignment" LD_PRELOAD="$LIB:$(built forwards_malloc.so)"
        for peer in "${PEERS[@]}"; do
            library=${peer%:*} package=${peer#*:}
            if peer_is_installed "$library" "$package"; then
                check "$mode: $library earlier in LD_PRELOAD serves the process" \
                    run_program "$mode" "$(built another_malloc)" LD_PRELOAD="$library:$LIB" -- "${library%%.*}"
                check "$mode: with $library later in LD_PRELOAD, behind a space, flarena serves the process" \
                    run_program "$mode" "$SCRATCH/functions/malloc" LD_PRELOAD="$LIB $library"
            else
                skip "$mode: $library in LD_PRELOAD" "package $package cannot be installed"
            fi
        done
        check "$mode: malloc works with a library before it in LD_PRELOAD whose constructor allocates" \
            run_program "$mode" "$SCRATCH/functions/malloc" LD_PRELOAD="$(built allocates_in_ctor.so):$LIB"
        check "$mode: malloc works with a library behind it in LD_PRELOAD whose constructor allocates" \
            run_program "$mode" "$SCRATCH/functions/malloc" LD_PRELOAD="$LIB:$(built allocates_in_ctor.so)"
        check "$mode: malloc works with a library before it in LD_PRELOAD that replaces libc's functions and allocates in them" \
            with_replaced_libc "$mode" "$(built replaces_libc.so):$LIB"
        # With a kernel for arm64 none of 120 runs ended like that.
        unless_qemu "ends one run in ten by SIGSEGV: a new mapping is missing when two threads map memory" \
            check "$mode: malloc works with a library behind it in LD_PRELOAD that replaces libc's functions and allocates in them" \
            with_replaced_libc "$mode" "$LIB:$(built replaces_libc.so)"
        check "$mode: $(sentence_of neighbours/deepbind.c)" \
            run_program "$mode" "$(built deepbind)" -- "$(built allocates_in_ctor.so)"
        check "$mode, FLARENA_RECYCLE=off: $(sentence_of neighbours/deepbind.c)" \
            run_program "$mode" "$(built deepbind)" FLARENA_RECYCLE=off -- "$(built allocates_in_ctor.so)"
        check "$mode: $(sentence_of neighbours/musl.c)" musl_program "$mode"
        check "$mode: $(sentence_of neighbours/late_dlopen.c)" opened_late "$mode"
        check "$mode: $(sentence_of neighbours/atfork_under_lock.c)" run_program "$mode" "$(built atfork_under_lock)"
        check "$mode: $(sentence_of neighbours/trim_errno.c)" \
            run_program "$mode" "$(built trim_errno)"
        check "$mode: $(sentence_of neighbours/closed_stdio.c)" with_closed_stdio "$mode"
        check "$mode, markers on and a bad setting: $(sentence_of neighbours/closed_stdio.c)" \
            with_closed_stdio "$mode" NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_DECAY_MS=junk
    done
    unless_qemu "takes a set-user-id program for any other" check "$(sentence_of neighbours/secure.c)" secure_program
}
