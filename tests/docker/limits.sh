# shellcheck shell=bash disable=SC2154  # part of run.sh
# The library reads the memory and CPU limits of its container, and gives memory back before a limit is reached.

# Found by a search in steps of 8 MB: jemalloc completes a model of 336 MB in 1 GiB, flarena one of 416 MB.
MODEL_MB=376
LIMIT_MB=1024
limited() { # MEGABYTES: docker's options; no swap
    printf '%s\n' -m "$1m" --memory-swap "$1m"
}
mapfile -t IN_256 < <(limited 256)

# jemalloc keeps freed memory for ever, and the container fills up.
fills_up() { # [DOCKER-OPTION...] -- COMMAND...
    inside bookworm-flarena "${IN_256[@]}" -e FLARENA_ALLOCATOR=jemalloc \
        -e MALLOC_CONF=dirty_decay_ms:-1,muzzy_decay_ms:-1 "$@"
}
killed() { # COMMAND...
    local status=0
    "$@" || status=$?
    [ $status -eq 137 ]
}

# A virtual machine with a kernel that has only cgroup v2. Its root file system is bookworm's image.
real_version_2() {
    local output status=0
    # shellcheck disable=SC2016  # for the machine's shell
    output=$("$ROOT/scripts/docker/cgroup2-vm.sh" flarena-test:bookworm-flarena 268435456 "50000 100000" '
        export FLARENA_ALLOCATOR=jemalloc MALLOC_CONF=dirty_decay_ms:-1,muzzy_decay_ms:-1
        python3 /t/facts.py cgroup_limit_bytes backend.narenas
        python3 /t/near_limit.py
        python3 /t/over_high.py
        FLARENA_AT_LIMIT=fail python3 -c "
kept = []
try:
    while True:
        kept.append(bytes(1) * (24 << 20))
except MemoryError:
    print(\"refused\")"
        FLARENA_PRESSURE=off python3 /t/near_limit.py 6' 2>&1) || status=$?
    printf '%s\n' "$output"
    [ $status -eq 0 ] || return $status
    [ "$(grep -E '^(268435456 4|survived|counted|refused|exit status .*)$' <<<"$output" | xargs)" = \
        "268435456 4 survived counted refused exit status 137" ]
}

WIRES=$ROOT/build/docker/wires # on a disk, where its pages can be reclaimed
fl_rounds() { # DOCKER-OPTION... -- ARGUMENT...: bench/fl_rounds.py with the model in $WIRES
    local BEFORE AFTER
    split_at_dashes "$@"
    inside nvflare-flarena -v "$ROOT/bench:/bench:ro" -v "$WIRES:/wires" "${BEFORE[@]}" -- \
        python3 /bench/fl_rounds.py --wire /wires/model "${AFTER[@]}"
}
# In a container without swap. The process is killed for memory, or an allocation fails, and the status is 1. Another
# failure has the status 3.
model_completes() { # DOCKER-OPTION...
    local options status=0
    mapfile -t options < <(limited $LIMIT_MB)
    mkdir -p "$WIRES"
    fl_rounds -- --make "$((MODEL_MB / 8))x8MB"
    fl_rounds "${options[@]}" "$@" -- --rounds 4 --idle 0.3 --final-idle 0 >"$SCRATCH/rounds.log" 2>&1 || status=$?
    rm -f "$WIRES/model"
    tail -n 5 "$SCRATCH/rounds.log"
    [ $status -ne 0 ] || return 0
    if [ $status -eq 137 ] || grep -q '^MemoryError\|_ArrayMemoryError' "$SCRATCH/rounds.log"; then return 1; fi
    return 3
}
model_is_killed() {
    local status=0
    model_completes "$@" || status=$?
    [ $status -eq 1 ]
}

test_limits() {
    check_output "flarena reads the container's memory limit" 268435456 \
        inside bookworm-flarena "${IN_256[@]}" -- python3 /t/facts.py cgroup_limit_bytes
    check "a container is killed when freed memory stays resident" killed fills_up -e FLARENA_PRESSURE=off -- python3 /t/near_limit.py 6
    check_output "freed memory goes back before the container reaches its limit" survived fills_up -- python3 /t/near_limit.py
    if [ -w /proc/pressure/memory ]; then
        check_output "the governor counts the kernel's memory stalls" counted \
            inside bookworm-flarena "${IN_256[@]}" -- python3 /t/thrash.py
    else
        skip "the governor counts the kernel's memory stalls" "this kernel has no pressure files"
    fi
    check "limit, quota, stalls, a refusal at the limit, and a kill without flarena are the same with cgroup v2" \
        real_version_2
    check "jemalloc with NVFlare's options is killed with a $MODEL_MB MB model in ${LIMIT_MB} MB" model_is_killed \
        -e LD_PRELOAD=libjemalloc.so.2 -e MALLOC_CONF=dirty_decay_ms:5000,muzzy_decay_ms:5000
    check "flarena completes the rounds of that model in glibc mode" model_completes -e FLARENA_ALLOCATOR=glibc
    check "flarena completes the rounds of that model in jemalloc mode" model_completes "${JEMALLOC[@]}"
}

if docker image inspect flarena-test:bookworm-flarena flarena-test:nvflare-flarena >/dev/null 2>&1; then
    test_limits
else
    skip "freed memory goes back before a container reaches its limit" "the images of bookworm and nvflare are needed"
fi
