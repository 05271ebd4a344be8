#!/usr/bin/env bash
# The recycler from outside: small C programs over the real library.
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
# shellcheck source=tests/recycler/folios.sh
. "$ROOT/tests/recycler/folios.sh"
cd "$ROOT/tests/recycler" || exit 1

COMMAND_TIMEOUT=120

serves_from() { # MODE BYTES VALUE: FLARENA_RECYCLE_MIN=VALUE puts this minimum in force, without a word
    run_program "$1" "$SCRATCH/settings/minimum" "FLARENA_RECYCLE_MIN=$3" -- "$2"
}

refuses_minimum() { # MODE VALUE: told in one line, and the default is in force
    run_as "$1" "FLARENA_RECYCLE_MIN=$2" "$SCRATCH/settings/minimum" 524288 2>"$SCRATCH/told"
    cat "$SCRATCH/told"
    [ "$(wc -l <"$SCRATCH/told")" -eq 1 ]
    grep -qF "FLARENA_RECYCLE_MIN=$2 is not a size" "$SCRATCH/told"
}

lives_with_pauses() { # MODE VALUE: FLARENA_DECAY_MS=VALUE
    run_program "$1" "$SCRATCH/settings/pauses" "FLARENA_DECAY_MS=$2" -- "$2"
}

check_programs .
for source in *.c; do
    check_source "$source" "it is the recycler that makes it so: $(sentence_of "$source")" fails_without_recycler "$SCRATCH/${source%.c}"
done
compile_all settings
for mode in "${MODES[@]}"; do
    check "$mode: $(sentence_of settings/plain_backend.c)" \
        run_program "$mode" "$SCRATCH/settings/plain_backend" FLARENA_RECYCLE=off
    check "$mode: FLARENA_RECYCLE_MIN=64K is where the recycler begins" serves_from "$mode" 65536 64K
    check "$mode: FLARENA_RECYCLE_MIN=3M is where the recycler begins" serves_from "$mode" 3145728 3M
    for value in 1 100T junk -1; do
        check "$mode: FLARENA_RECYCLE_MIN=$value is refused, and the recycler begins at 512K" refuses_minimum "$mode" "$value"
    done
    for value in auto 300; do
        check "$mode, FLARENA_DECAY_MS=$value: $(sentence_of settings/pauses.c)" lives_with_pauses "$mode" "$value"
    done
    check "$mode: $(sentence_of settings/limit.c)" \
        run_program "$mode" "$SCRATCH/settings/limit" FLARENA_MEMORY_LIMIT=20M
done
[ "${MODES[0]}" = bare ] || check_folios
finish
