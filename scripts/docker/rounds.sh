# shellcheck shell=bash
# FL rounds in a container with a memory limit, for bisect.sh and tests/docker. The caller sets ROOT.

# shellcheck disable=SC2034  # the scripts that source this file use it
ALLOCATORS=(glibc jemalloc flarena-glibc flarena-jemalloc)
ROUNDS_IMAGE=flarena-test:nvflare-flarena # contains numpy and Debian's libjemalloc2
WIRES=$ROOT/build/docker/wires
ARRAY_MB=8

make_rounds_image() {
    "$ROOT/scripts/docker/nvflare-image.sh" && "$ROOT/scripts/build-release.sh" "$(uname -m)" >/dev/null &&
        (cd "$ROOT" && DOCKER_BUILDKIT=0 docker build -q -f docker/Dockerfile --build-arg BASE=flarena-test:nvflare \
            --build-arg "ARCH=$(uname -m)" -t "$ROUNDS_IMAGE" . >/dev/null 2>&1)
}

allocator_environment() { # ALLOCATOR: docker's options, one a line
    case $1 in
        glibc) printf '%s\n' -e LD_PRELOAD= ;;
        jemalloc) printf '%s\n' -e LD_PRELOAD=libjemalloc.so.2 -e MALLOC_CONF=dirty_decay_ms:5000,muzzy_decay_ms:5000 ;;
        flarena-glibc) printf '%s\n' -e FLARENA_ALLOCATOR=glibc ;;
        flarena-jemalloc) printf '%s\n' -e FLARENA_ALLOCATOR=jemalloc ;;
        *) echo "no such allocator: $1; there are: ${ALLOCATORS[*]}" >&2 && return 2 ;;
    esac
}

rounds_in_container() { # DOCKER-OPTION... -- ARGUMENT...: bench/fl_rounds.py, without a network
    local options=()
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    docker run --rm --network none -v "$ROOT/bench:/bench:ro" -v "$WIRES:/wires" "${options[@]}" "$ROUNDS_IMAGE" \
        python3 /bench/fl_rounds.py "$@"
}

# Returns 0 when all rounds completed, 1 when the process was killed for memory or an allocation failed. Any other failure
# is not about memory, and ends the calling script. The container has no swap.
complete_rounds() { # ALLOCATOR MODEL_MB LIMIT_MB ROUNDS
    local wire=$1-$2 environment status=0
    mapfile -t environment < <(allocator_environment "$1")
    [ ${#environment[@]} -gt 0 ] || exit 2
    mkdir -p "$WIRES"
    rounds_in_container -- --wire "/wires/$wire" --make "$(($2 / ARRAY_MB))x${ARRAY_MB}MB" >&2
    rounds_in_container -m "$3m" --memory-swap "$3m" "${environment[@]}" -- \
        --wire "/wires/$wire" --rounds "$4" --idle 0.3 --final-idle 0 >"$WIRES/$wire.log" 2>&1 || status=$?
    rm -f "$WIRES/$wire"
    case $status in
        0) return 0 ;;
        137) return 1 ;;
        *) grep -q '^MemoryError\|_ArrayMemoryError' "$WIRES/$wire.log" && return 1 ;;
    esac
    tail -n 5 "$WIRES/$wire.log" >&2
    exit 3
}
