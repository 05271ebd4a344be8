#!/usr/bin/env bash
# Prints the largest model with which each allocator completes ten FL rounds (bench/fl_rounds.py) in a container with a
# memory limit. With a larger model the kernel kills the process.
#
#   scripts/docker/bisect.sh [ALLOCATOR...]        all: glibc jemalloc flarena-glibc flarena-jemalloc
#   LIMIT_MB=512 ROUNDS=5 STEP_MB=16 scripts/docker/bisect.sh glibc
#
# jemalloc is Debian's, with the options that NVFlare sets. A model consists of arrays of 8 MB.

set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=scripts/docker/rounds.sh
. "$ROOT/scripts/docker/rounds.sh"
LIMIT_MB=${LIMIT_MB:-1024}
ROUNDS=${ROUNDS:-10}
STEP_MB=${STEP_MB:-8}

# A binary search. Prints MB.
largest() { # ALLOCATOR
    local low=$((LIMIT_MB / 16 / STEP_MB)) high=$((LIMIT_MB / 2 / STEP_MB + 1)) middle
    complete_rounds "$1" $((low * STEP_MB)) "$LIMIT_MB" "$ROUNDS" || { echo "less than $((low * STEP_MB))" && return; }
    while [ $((high - low)) -gt 1 ]; do
        middle=$(((low + high) / 2))
        if complete_rounds "$1" $((middle * STEP_MB)) "$LIMIT_MB" "$ROUNDS"; then low=$middle; else high=$middle; fi
    done
    echo $((low * STEP_MB))
}

command -v docker >/dev/null || { echo "bisect: docker is missing" >&2 && exit 1; }
make_rounds_image
[ $# -gt 0 ] || set -- "${ALLOCATORS[@]}"
printf 'largest model that completes %d rounds in %d MB\n\n%-20s %10s\n' "$ROUNDS" "$LIMIT_MB" allocator "model MB"
for allocator; do
    printf '%-20s %10s\n' "$allocator" "$(largest "$allocator")"
done
