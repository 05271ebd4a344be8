#!/usr/bin/env bash
# Stands in for the sub_start.sh that NVFlare generates, wherever flarena has to care: it answers
# to exactly "true" with a second preload, exports 4 arenas unless told, and takes arguments.
startup=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ "${NVFLARE_ENABLE_JEMALLOC_PRELOAD:-}" = true ]; then
    export LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD:}$startup/libjemalloc.so.2"
fi
export MALLOC_ARENA_MAX=${MALLOC_ARENA_MAX:-4}
printf '<%s>' "$@"
printf '\n'
"$SHOW" LD_PRELOAD MALLOC_ARENA_MAX FLARENA_ROLE
