#!/usr/bin/env bash
# The recycler as programs see it: C programs with the preloaded library. There is no bare form.
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
cd "$ROOT/tests/recycler" || exit 1

sets_minimum() { # MODE BYTES VALUE: FLARENA_RECYCLE_MIN=VALUE sets this minimum, without a message
    run_program "$1" "$SCRATCH/settings/minimum" "FLARENA_RECYCLE_MIN=$3" -- "$2"
}

refuses_minimum() { # MODE VALUE: one message, and the default stays in force
    run_as "$1" "FLARENA_RECYCLE_MIN=$2" "$SCRATCH/settings/minimum" 524288 2>"$SCRATCH/messages"
    cat "$SCRATCH/messages"
    [ "$(wc -l <"$SCRATCH/messages")" -eq 1 ]
    grep -qF "FLARENA_RECYCLE_MIN=$2 is not a size" "$SCRATCH/messages"
}

# docs/design/life-of-an-allocation.md names each file that a cached malloc(8 MiB) and its free pass through, by the line
# tables of the library. exports.rs has no instruction of its own there.
walk() { # malloc|free HEADING
    local named
    [ -e "$SCRATCH/steps" ] || without_preload TEST_MODE=bare "$SCRATCH/walk/step" "$LIB" "$SCRATCH/walk/pair" >"$SCRATCH/steps"
    named=$(sed -n "/^## $2/,/^## /s/\`/\n/gp" "$ROOT/docs/design/life-of-an-allocation.md" | grep -E '^[a-z]+/[a-z_/]+\.rs$' | sort -u)
    [ "$(wc -l <<<"$named")" -le 18 ]
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
    check_source "$source" "fails with FLARENA_RECYCLE=off: $(sentence_of "$source")" fails_without_recycler "$SCRATCH/${source%.c}"
done
compile_all settings
for mode in "${MODES[@]}"; do
    check "$mode: $(sentence_of settings/plain_backend.c)" \
        run_program "$mode" "$SCRATCH/settings/plain_backend" FLARENA_RECYCLE=off
    check "$mode: with FLARENA_RECYCLE_MIN=64K the recycler serves blocks from 64 KiB" sets_minimum "$mode" 65536 64K
    check "$mode: with FLARENA_RECYCLE_MIN=3M the recycler serves blocks from 3 MiB" sets_minimum "$mode" 3145728 3M
    for value in 1 100T junk -1; do
        check "$mode: FLARENA_RECYCLE_MIN=$value is reported in one line, and 512K is used" refuses_minimum "$mode" "$value"
    done
    check "$mode: $(sentence_of settings/limit.c)" \
        run_program "$mode" "$SCRATCH/settings/limit" FLARENA_MEMORY_LIMIT=20M
done
finish
