# shellcheck shell=bash disable=SC2154,SC2034  # part of run.sh, which sets RUN; its other parts use what is set here
# Images, and commands in them.

SUITES=(bullseye bookworm trixie sid)
RELEASE=$ROOT/build/release/$(uname -m)

build_release() {
    "$ROOT/scripts/build-release.sh" "$(uname -m)"
}

# docker/Dockerfile on a base, as a user builds it. Older engines only have the classic builder.
build_image() { # BASE TAG
    (cd "$ROOT" && DOCKER_BUILDKIT=0 docker build -f docker/Dockerfile \
        --build-arg "BASE=$1" --build-arg "ARCH=$(uname -m)" -t "$2" .)
}

# The base of a suite and flarena on it; ends with 77 and the reason where the suite cannot be had.
make_suite() { # SUITE
    local status=0
    "$ROOT/scripts/docker/base-image.sh" "$1" || status=$?
    [ $status -ne 3 ] || return 77
    [ $status -eq 0 ] && build_image "flarena-test:$1" "flarena-test:$1-flarena"
}

# docker compose is a plugin of newer engines, docker-compose a program of its own before.
compose() {
    if docker compose version >/dev/null 2>&1; then
        docker compose "$@"
    else
        need docker-compose || { echo "neither docker compose nor docker-compose is there" && exit 77; }
        docker-compose "$@"
    fi
}

# The image's own environment and what the options add; no network, gone afterwards.
inside() { # IMAGE-TAG [DOCKER-OPTION...] -- COMMAND...
    local image=flarena-test:$1 BEFORE AFTER
    split_at_dashes "${@:2}"
    timeout 120 docker run --rm --network none --label "$RUN" -v "$ROOT/tests/docker/programs:/t:ro" \
        "${BEFORE[@]}" "$image" "${AFTER[@]}"
}

JEMALLOC=(-e NVFLARE_ENABLE_JEMALLOC_PRELOAD=true)
# Enough to lay file systems over /proc and /sys; --privileged asks for more than some hosts may give.
MAY_MOUNT=(--cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined)
MARKERS=(-e NVFLARE_CLIENT_MEMORY_PROFILE=1)
