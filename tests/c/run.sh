#!/usr/bin/env bash
# Tiny C and C++ programs, one behaviour each: the exported functions, then the traps of malloc
# interposers. The first line of a program is the sentence it proves. Each runs in both modes;
# `tests/c/run.sh bare` runs those that state plain C or glibc semantics without the preload,
# which shows that it is the semantics they state.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
cd "$ROOT/tests/c" || exit 1

COMMAND_TIMEOUT=240
MODES=(glibc jemalloc)
[ "${1-}" = bare ] && MODES=(bare)

# -fno-builtin: the compiler must not remove or merge the calls under test.
C_FLAGS=(-std=gnu11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror -fno-builtin -pthread -I "$ROOT")
CXX_FLAGS=(-std=c++17 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror -fno-builtin -pthread -I "$ROOT")

sentence_of() { # SOURCE
    sed -n '1s,^// ,,p' "$1"
}

compile() { # SOURCE PROGRAM [OPTION...]
    local source=$1 program=$2
    shift 2
    case $source in
        *.cpp) g++ "${CXX_FLAGS[@]}" "$source" -o "$program" "$@" -ldl ;;
        *) gcc "${C_FLAGS[@]}" "$source" -o "$program" "$@" -ldl ;;
    esac
}

run_as() { # glibc|jemalloc|bare [NAME=VALUE...] COMMAND...
    local mode=$1
    shift
    if [ "$mode" = bare ]; then
        without_preload TEST_MODE=bare "$@"
    else
        in_mode "$mode" TEST_MODE="$mode" "$@"
    fi
}

# Silence is part of the promise: the shim prints nothing unless asked.
run_program() { # MODE PROGRAM [NAME=VALUE...] [-- ARGUMENT...]
    local mode=$1 program=$2 settings=() status=0
    shift 2
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        settings+=("$1")
        shift
    done
    run_as "$mode" "${settings[@]}" "$program" "${@:2}" >/dev/null 2>"$SCRATCH/stderr" || status=$?
    cat "$SCRATCH/stderr"
    [ "$status" -ne 0 ] || [ ! -s "$SCRATCH/stderr" ] || status=99
    return "$status"
}

compile_all() { # DIRECTORY: two compilers at a time, as most of the time goes here
    local source jobs=0
    mkdir -p "$SCRATCH/$1"
    for source in "$1"/*.c "$1"/*.cpp; do
        [ -e "$source" ] || continue
        compile "$source" "$SCRATCH/${source%.*}" >"$SCRATCH/${source%.*}.log" 2>&1 &
        jobs=$((jobs + 1))
        [ $((jobs % 2)) -eq 0 ] && wait
    done
    wait
}

run_all() { # DIRECTORY
    local source mode sentence
    compile_all "$1"
    for source in "$1"/*.c "$1"/*.cpp; do
        [ -e "$source" ] || continue
        sentence=$(sentence_of "$source")
        if [ ! -x "$SCRATCH/${source%.*}" ]; then
            fail "$sentence: $source compiles" "$(cat "$SCRATCH/${source%.*}.log")"
            continue
        fi
        for mode in "${MODES[@]}"; do
            check "$mode: $sentence" run_program "$mode" "$SCRATCH/${source%.*}"
        done
    done
}

# The programs that meet large blocks, with the recycler out of the way and with all of its reach.
run_with_other_recycler() {
    local mode setting program
    for mode in "${MODES[@]}"; do
        for setting in FLARENA_RECYCLE=off FLARENA_RECYCLE_MIN=64K FLARENA_DECAY_MS=0; do
            for program in functions/{malloc,calloc,realloc,malloc_usable_size,mallinfo2} traps/{fuzz,fork_while_allocating}; do
                # A heap keeps advice given to its pages: fuzz gives none that is left when the recycler is off.
                [ "$setting $program" = "FLARENA_RECYCLE=off traps/fuzz" ] && continue
                check "$mode, $setting: $(sentence_of "$program.c")" run_program "$mode" "$SCRATCH/$program" "$setting"
            done
        done
    done
}

need gcc || skip "C programs" "no gcc"
need g++ || fail "g++ is there" "install the package g++"
run_all functions
run_all traps
if [ "${MODES[0]}" != bare ]; then
    run_with_other_recycler
    # shellcheck source=tests/c/api.sh
    . ./api.sh
    # shellcheck source=tests/c/neighbours.sh
    . ./neighbours.sh
    check_api
    check_neighbours
fi
finish
