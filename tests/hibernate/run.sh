#!/usr/bin/env bash
# Hibernation: what goes to swap when a program is idle, what comes back, and what stays.
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
cd "$ROOT/tests/hibernate" || exit 1

COMMAND_TIMEOUT=120
SWAP=$SCRATCH/swap
# Swap that is in use outlives its file's name.
trap 'swapoff "$SWAP" 2>/dev/null; rm -rf "$SCRATCH"' EXIT

swap_on() { # MB: as the only swap
    {
        rm -f "$SWAP" && fallocate -l "$1M" "$SWAP" && chmod 600 "$SWAP" && mkswap "$SWAP" && swapon "$SWAP"
    } >"$SCRATCH/swapon" 2>&1
}
hibernating() { # MODE PROGRAM [NAME=VALUE...]
    run_program "$1" "$SCRATCH/$2" FLARENA_HIBERNATE=1 "${@:3}"
}
says_why_not() {
    run_as glibc FLARENA_HIBERNATE=1 FLARENA_LOG=info "$SCRATCH/stays" 2>&1 | grep 'FLARENA_HIBERNATE=1: nothing to be done until there is swap'
}
marked() {
    run_as glibc FLARENA_HIBERNATE=1 NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_MARKER_FILE="$SCRATCH/markers" "$SCRATCH/mark"
    python3 -c '
import json, sys
marker = [m for m in map(json.loads, open(sys.argv[1])) if m["stage"] == "receive"][0]
print(marker)
assert 60 << 20 <= marker["hibernated_bytes"] <= marker["swap_bytes"] + (4 << 20)' "$SCRATCH/markers"
}

compile_all .
if [ "$(wc -l </proc/swaps)" -gt 1 ]; then
    skip "an idle program's large blocks are paged out" "this machine has swap of its own, which is not ours to use up"
    finish
    exit
fi
for mode in "${MODES[@]}"; do
    check "$mode, without swap: nothing is paged out, and nothing is said" hibernating "$mode" stays
done
check "without swap FLARENA_LOG=info says why nothing is paged out" says_why_not
if swap_on 512; then
    check "off, the default: $(sentence_of stays.c)" run_program glibc "$SCRATCH/stays"
    for mode in "${MODES[@]}"; do
        for program in out_and_back rest forked; do
            check "$mode: $(sentence_of $program.c)" hibernating "$mode" "$program"
        done
    done
    for program in locked shared registered killed; do
        check "$(sentence_of $program.c)" hibernating glibc "$program"
    done
    check "$(sentence_of mark.c)" marked
    swapoff "$SWAP"
    swap_on 128
    check "$(sentence_of full.c)" hibernating glibc full
else
    skip "an idle program's large blocks are paged out" "no swap file may be made here: $(tail -n 1 "$SCRATCH/swapon")"
fi
finish
