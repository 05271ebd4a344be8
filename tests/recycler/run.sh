#!/usr/bin/env bash
# The recycler from outside: small C programs over the real library, each in both modes.
# The first line of a program is the sentence it proves.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
cd "$ROOT/tests/recycler/programs" || exit 1

PROGRAM_TIMEOUT=120
FLAGS=(-std=gnu11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror -Wno-alloc-size-larger-than -fno-builtin
    -pthread)

run_program() { # MODE PROGRAM [NAME=VALUE...]
    local mode=$1 program=$2
    shift 2
    in_mode "$mode" "$@" timeout "$PROGRAM_TIMEOUT" "$program"
}

need gcc || exit 1
for source in *.c; do
    program=$SCRATCH/${source%.c}
    sentence=$(sed -n '1s,^// ,,p' "$source")
    if ! gcc "${FLAGS[@]}" "$source" -o "$program" 2>"$SCRATCH/log"; then
        fail "$sentence" "$(cat "$SCRATCH/log")"
        continue
    fi
    for mode in glibc jemalloc; do
        check "$sentence ($mode)" run_program "$mode" "$program"
    done
done

# Numbers that a program is told, and that must hold whatever the settings.
plain_backend() { # MODE: the recycler serves nothing
    run_program "$1" "$SCRATCH/threads" FLARENA_RECYCLE=off
}

odd_minimum() { # MODE VALUE: one line at most, and the program runs
    local said
    said=$(run_program "$1" "$SCRATCH/threads" "FLARENA_RECYCLE_MIN=$2" 2>&1)
    [ "$(printf '%s' "$said" | grep -c .)" -le 1 ]
}

tight_limit() { # MODE: a limit below the live size fails nothing and burns nothing
    local said
    said=$(run_program "$1" "$SCRATCH/threads" FLARENA_MEMORY_LIMIT=20M 2>&1)
    [ -z "$said" ]
}

for mode in glibc jemalloc; do
    check "FLARENA_RECYCLE=off gives the plain backend ($mode)" plain_backend "$mode"
    for value in 1 100T junk -1; do
        check "FLARENA_RECYCLE_MIN=$value gets a sane value ($mode)" odd_minimum "$mode" "$value"
    done
    check "FLARENA_MEMORY_LIMIT below the live size fails no allocation ($mode)" tight_limit "$mode"
done

finish
