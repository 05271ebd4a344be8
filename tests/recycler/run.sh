#!/usr/bin/env bash
# The recycler as programs see it: C programs with the preloaded library. There is no bare form.
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
cd "$ROOT/tests/recycler" || exit 1

sets_minimum() { # MODE BYTES VALUE: FLARENA_RECYCLE_MIN=VALUE sets this minimum, without a message
    run_program "$1" "$SCRATCH/settings/minimum" "FLARENA_RECYCLE_MIN=$3" -- "$2"
}

# docs/design/life-of-an-allocation.md names each file that a cached malloc(8 MiB) and its free pass through, by the line
# tables of the library. exports.rs has no instruction of its own there.
walk() { # malloc|free HEADING
    local named
    [ -e "$SCRATCH/steps" ] || run_as glibc "$SCRATCH/walk/step" >"$SCRATCH/steps"
    named=$(sed -n "/^## $2/,/^## /s/\`/\n/gp" "$ROOT/docs/design/life-of-an-allocation.md" | grep -E '^[a-z]+/[a-z_/]+\.rs$' | sort -u)
    [ "$(wc -l <<<"$named")" -le 16 ]
    sed -n "s/^$1 //p" "$SCRATCH/steps" | sort -u | addr2line -e "$LIB" | grep -vE '/\.cargo/|/rustc/' |
        sed -nE 's|.*/src/([a-z_/]+\.rs):[1-9].*|\1|p' | sort -u >"$SCRATCH/walked"
    [ "$(wc -l <"$SCRATCH/walked")" -gt 10 ]
    ! comm -13 <(printf '%s\n' "$named") "$SCRATCH/walked" | grep .
}

compile_all walk
check "a walk through malloc(8 MiB) visits only files that its page names" walk malloc 'malloc(8 MiB), pages cached'
check "a walk through free visits only files that its page names" walk free 'free(pointer)'
check_programs .
for source in *.c; do
    while read -r line sentence; do
        check_source "$source" "$line" "fails with FLARENA_RECYCLE=off: $sentence" \
            fails_without_recycler "$SCRATCH/${source%.c}" "$line"
    done < <(tests_of "$source")
done
compile_all settings
for mode in "${MODES[@]}"; do
    check_tests_of settings/plain_backend.c "$mode" FLARENA_RECYCLE=off
    check_tests_of settings/limit.c "$mode" FLARENA_MEMORY_LIMIT=20M
    check "$mode: with FLARENA_RECYCLE_MIN=64K the recycler serves blocks from 64 KiB" sets_minimum "$mode" 65536 64K
    check "$mode: with FLARENA_RECYCLE_MIN=3M the recycler serves blocks from 3 MiB" sets_minimum "$mode" 3145728 3M
done
finish
