#!/usr/bin/env bash
# Hibernation: which memory of an idle program goes to swap, comes back or stays.
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
cd "$ROOT/tests/hibernate" || exit 1

# scripts/soak.sh hibernate sets more.
ROUNDS=${HIBERNATE_ROUNDS:-5}
COMMAND_TIMEOUT=$((240 + ROUNDS * 10))
SWAP=$SCRATCH/swap
# Swap in use must be switched off before its file is removed.
trap 'swapoff "$SWAP" 2>/dev/null; rm -rf "$SCRATCH"' EXIT

swap_on() { # MB: as the only swap
    {
        rm -f "$SWAP" && fallocate -l "$1M" "$SWAP" && chmod 600 "$SWAP" && mkswap "$SWAP" && swapon "$SWAP"
    } >"$SCRATCH/swapon" 2>&1
}
hibernating() { # MODE PROGRAM [NAME=VALUE...]
    run_program "$1" "$SCRATCH/$2" FLARENA_HIBERNATE=1 "${@:3}"
}
reports_missing_swap() {
    run_as glibc FLARENA_HIBERNATE=1 FLARENA_LOG=info "$SCRATCH/not_hibernated" 2>&1 | grep 'FLARENA_HIBERNATE=1: no hibernation until there is swap'
}
marker_reports_hibernated() {
    run_as glibc FLARENA_HIBERNATE=1 NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_MARKER_FILE="$SCRATCH/markers" "$SCRATCH/marker"
    python3 -c '
import json, sys
marker = [m for m in map(json.loads, open(sys.argv[1])) if m["stage"] == "receive"][0]
print(marker)
assert 60 << 20 <= marker["hibernated_bytes"] <= marker["swap_bytes"] + (4 << 20)' "$SCRATCH/markers"
}

compile_all .
if [ "$(wc -l </proc/swaps)" -gt 1 ]; then
    skip "the large blocks of an idle program go to swap" "this machine has swap, which the suite must not use up"
    finish
    exit
fi
for mode in "${MODES[@]}"; do
    check "$mode, without swap: nothing goes to swap, and no message is printed" hibernating "$mode" not_hibernated
done
check "without swap and with FLARENA_LOG=info a message says that swap is missing" reports_missing_swap
if swap_on 512; then
    check "without FLARENA_HIBERNATE: $(sentence_of not_hibernated.c)" run_program glibc "$SCRATCH/not_hibernated"
    for mode in "${MODES[@]}"; do
        for program in out_and_back small_heap forked; do
            check "$mode: $(sentence_of $program.c)" hibernating "$mode" "$program"
        done
    done
    for program in locked shared registered killed; do
        check "$(sentence_of $program.c)" hibernating glibc "$program"
    done
    check "$(sentence_of marker.c)" marker_reports_hibernated
    check "$(sentence_of stress.c)" hibernating glibc stress -- "$ROUNDS"
    [ -z "${HIBERNATE_ROUNDS-}" ] || check "jemalloc: $(sentence_of stress.c)" hibernating jemalloc stress -- "$ROUNDS"
    swapoff "$SWAP"
    swap_on 128
    [ -z "${HIBERNATE_ROUNDS-}" ] || check "swap that fills up: $(sentence_of stress.c)" hibernating glibc stress -- "$ROUNDS"
    check "$(sentence_of full.c)" hibernating glibc full
else
    skip "the large blocks of an idle program go to swap" "no swap file can be created: $(tail -n 1 "$SCRATCH/swapon")"
fi
finish
