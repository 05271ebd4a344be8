#!/usr/bin/env bash
# The long form: MINUTES of the stress program, one minute each with another seed, mode, setting and number of threads.
# Copies of pages after forks take three quarters of the time, so four of seven runs do not fork. Prints a line for each
# run, and stops at the first failure. The last line of a failure is the command that repeats it.
#
#   tests/stress/soak.sh MINUTES
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"

minutes=${1:?MINUTES}
end=$((SECONDS + minutes * 60))
# More than a run may take by its own clock.
COMMAND_TIMEOUT=900
settings=(FLARENA_RECYCLE=on FLARENA_RECYCLE_MIN=64K FLARENA_DECAY_MS=0 FLARENA_RECYCLE=off FLARENA_MEMORY_LIMIT=512M FLARENA_GOVERNOR=off)
threads=(4 1 32 8 100)
without_forks=--without=fork,signal-forks,spawn
total=0

build_stress "$SCRATCH/stress" || exit 1
for ((run = 0; SECONDS < end; run++)); do
    seed=$RANDOM$RANDOM
    left=$(((end - SECONDS) < 60 ? end - SECONDS : 60))
    mode=${MODES[run % ${#MODES[@]}]}
    setting=${settings[run / 2 % ${#settings[@]}]}
    count=${threads[run % ${#threads[@]}]}
    classes=()
    ((run % 7 < 3)) || classes=("$without_forks")
    if ! run_as "$mode" "$setting" NVFLARE_CLIENT_MEMORY_PROFILE=0 "$SCRATCH/stress" --seed="$seed" --threads="$count" --seconds="$left" "${classes[@]}" \
        >"$SCRATCH/out" 2>"$SCRATCH/err"; then
        printf 'not ok - %s %s, %s threads%s, seed %s\n' "$mode" "$setting" "$count" "${classes[0]:+ $without_forks}" "$seed"
        cat "$SCRATCH/out" "$SCRATCH/err"
        exit 1
    fi
    done_now=$(tail -n 1 "$SCRATCH/out" | cut -d ' ' -f 1)
    total=$((total + done_now))
    printf 'ok - %s %s, %s threads%s, seed %s: %s operations\n' "$mode" "$setting" "$count" "${classes[0]:+ $without_forks}" "$seed" "$done_now"
done
printf '# %d operations in %d runs\n' "$total" "$run"
