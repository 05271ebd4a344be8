#!/usr/bin/env bash
# A sub_start.sh that does the same as NVFlare's where it matters to flarena: it preloads jemalloc at exactly "true",
# exports 4 arenas unless MALLOC_ARENA_MAX is set, and takes arguments.
startup=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ "${NVFLARE_ENABLE_JEMALLOC_PRELOAD:-}" = true ]; then
    export LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD:}$startup/libjemalloc.so.2"
fi
export MALLOC_ARENA_MAX=${MALLOC_ARENA_MAX:-4}
printf '<%s>' "$@"
printf '\n'
"$SHOW" LD_PRELOAD MALLOC_ARENA_MAX FLARENA_ROLE
