#!/usr/bin/env bash
# A million random calls of the malloc family, checked against a model of every block, in both modes. A failure prints the
# seed of its run. soak.sh is the long form.
#
#   tests/stress/run.sh [bare]     STRESS_SEED=N repeats a run
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"

# Enough for a busy machine.
COMMAND_TIMEOUT=600
seed=${STRESS_SEED:-$RANDOM$RANDOM}
check "the stress program compiles" build_stress "$SCRATCH/stress"
for mode in "${MODES[@]}"; do
    stress() { # SENTENCE [NAME=VALUE...] -- OPTION...
        local BEFORE AFTER
        split_at_dashes "${@:2}"
        check "$mode$1" run_program "$mode" "$SCRATCH/stress" \
            NVFLARE_CLIENT_MEMORY_PROFILE=0 "${BEFORE[@]}" -- --seed="$seed" "${AFTER[@]}"
    }
    stress ": 420000 calls from four threads, with forks, signals, markers and requests, lose no byte" \
        -- --operations=420000
    stress ", FLARENA_RECYCLE_MIN=64K, FLARENA_DECAY_MS=1: 60000 calls from 32 threads lose no byte" \
        FLARENA_RECYCLE_MIN=64K FLARENA_DECAY_MS=1 -- --operations=60000 --threads=32
    stress ", FLARENA_DECAY_MS=0, one thread: 20000 calls lose no byte" \
        FLARENA_DECAY_MS=0 -- --operations=20000 --threads=1
    stress ", FLARENA_RECYCLE=off, FLARENA_SITES=on: 40000 calls lose no byte" \
        FLARENA_RECYCLE=off FLARENA_SITES=on -- --operations=40000
    stress ", FLARENA_SITES_SAMPLE=4K: sites start in the middle of 200000 calls, which lose no byte" \
        FLARENA_SITES_SAMPLE=4K -- --seed="$((seed | 1))" --operations=200000
    # With a second thread, such as the governor, libc takes its malloc locks at a fork. In glibc mode a handler must not fork
    # in the middle of a malloc then.
    stress ", FLARENA_GOVERNOR=off: 5000 calls from one thread whose signal handler forks at any moment lose no byte" \
        FLARENA_GOVERNOR=off -- --operations=5000 --threads=1
done
finish
