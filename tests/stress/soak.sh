#!/usr/bin/env bash
# The long form: MINUTES of the stress program, each run another seed, mode and setting; ten minutes on
# two quiet cores are about 10^7 operations. Prints a line for each run, and stops at the first failure,
# whose last line repeats it.
#
#   tests/stress/soak.sh MINUTES
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
# shellcheck source=tests/stress/programs.sh
. "$ROOT/tests/stress/programs.sh"

minutes=${1:?MINUTES}
end=$((SECONDS + minutes * 60))
# Longer than a run may last by its own clock.
COMMAND_TIMEOUT=900
settings=(FLARENA_RECYCLE=on FLARENA_RECYCLE_MIN=64K FLARENA_DECAY_MS=0 FLARENA_RECYCLE=off FLARENA_MEMORY_LIMIT=512M FLARENA_GOVERNOR=off)
threads=(4 1 32 8 100)
total=0

build_stress "$SCRATCH/stress" || exit 1
for ((run = 0; SECONDS < end; run++)); do
    seed=$RANDOM$RANDOM
    left=$(((end - SECONDS) < 300 ? end - SECONDS : 300))
    mode=${MODES[run % ${#MODES[@]}]}
    setting=${settings[run / 2 % ${#settings[@]}]}
    count=${threads[run % ${#threads[@]}]}
    if ! run_as "$mode" "$setting" NVFLARE_CLIENT_MEMORY_PROFILE=0 "$SCRATCH/stress" --seed="$seed" --threads="$count" --seconds="$left" \
        >"$SCRATCH/out" 2>"$SCRATCH/err"; then
        printf 'not ok - %s %s, %s threads, seed %s\n' "$mode" "$setting" "$count" "$seed"
        cat "$SCRATCH/out" "$SCRATCH/err"
        exit 1
    fi
    done_now=$(tail -n 1 "$SCRATCH/out" | cut -d ' ' -f 1)
    total=$((total + done_now))
    printf 'ok - %s %s, %s threads, seed %s: %s operations\n' "$mode" "$setting" "$count" "$seed" "$done_now"
done
printf '# %d operations in %d runs\n' "$total" "$run"
