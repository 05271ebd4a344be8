# shellcheck shell=bash disable=SC2154,SC2034  # part of run.sh, which sets RUN; its other parts use these variables
# Builds images and runs commands in them.

SUITES=(bullseye bookworm trixie sid)
RELEASE=$ROOT/build/release/$(uname -m)

build_release() {
    "$ROOT/scripts/build-release.sh" "$(uname -m)"
}

# Builds docker/Dockerfile as a user does. Older engines only have the classic builder.
build_image() { # BASE TAG
    (cd "$ROOT" && DOCKER_BUILDKIT=0 docker build -f docker/Dockerfile \
        --build-arg "BASE=$1" --build-arg "ARCH=$(uname -m)" -t "$2" .)
}

# Makes the base image of a suite, and flarena's image on it. Returns 77 where no package source has the suite.
make_suite() { # SUITE
    local status=0
    "$ROOT/scripts/docker/base-image.sh" "$1" || status=$?
    [ $status -ne 3 ] || return 77
    [ $status -eq 0 ] && build_image "flarena-test:$1" "flarena-test:$1-flarena"
}

# Newer engines have the plugin `docker compose`, older ones the program docker-compose.
compose() {
    if docker compose version >/dev/null 2>&1; then
        docker compose "$@"
    else
        need docker-compose || { echo "neither docker compose nor docker-compose is installed" && exit 77; }
        docker-compose "$@"
    fi
}

# In a new container without a network, with the environment of the image and of the options.
inside() { # IMAGE-TAG [DOCKER-OPTION...] -- COMMAND...
    local image=flarena-test:$1 BEFORE AFTER
    split_at_dashes "${@:2}"
    timeout 400 docker run --rm --network none --label "$RUN" -v "$ROOT/tests/docker/programs:/t:ro" \
        "${BEFORE[@]}" "$image" "${AFTER[@]}"
}

submit() { # NETWORK ADMIN-KIT [DOCKER-OPTION...] -- ARGUMENT...: runs federation/submit.py in the network of a federation
    local BEFORE AFTER
    split_at_dashes "${@:3}"
    timeout --signal=KILL 300 docker run --rm --label "$RUN" --network "$1" -v "$ROOT/tests/docker/federation:/project:ro" \
        -v "$2:/kit" "${BEFORE[@]}" flarena-test:nvflare python3 /project/submit.py /kit "${AFTER[@]}"
}

processes_are() { # NAMES FILE...: markers of these processes, and of no other, are in the files, each with jemalloc
    python3 programs/markers.py processes "${@:2}" | tee /dev/stderr | grep -qx "$1 jemalloc"
}

JEMALLOC=(-e NVFLARE_ENABLE_JEMALLOC_PRELOAD=true)
# Enough to mount over /proc and /sys. Some hosts refuse --privileged.
MAY_MOUNT=(--cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined)
MARKERS=(-e NVFLARE_CLIENT_MEMORY_PROFILE=1)
