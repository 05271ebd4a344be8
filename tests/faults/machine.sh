#!/usr/bin/env bash
# Limits that need a machine of their own: cgroup v2 without swap, locked memory, and strict overcommit. scripts/soak.sh
# limits runs this in an emulated machine.
cd "$(dirname "$0")" || exit 1
# shellcheck source=tests/check.sh
. ../check.sh
# shellcheck source=tests/faults/faults.sh
. ./faults.sh

IMAGE=flarena-test:limits
export PATIENCE_SECONDS=${PATIENCE_SECONDS:-1800}

# One line for each limit and call: the exit statuses without the library, in glibc mode and in jemalloc mode.
make_script() {
    cat <<END
calls() {
    limit=\$1; shift
    for call in ${CALLS_UNDER_LIMIT[*]}; do
        statuses=
        for mode in bare glibc jemalloc; do
            preload=/libflarena.so; [ \$mode != bare ] || preload=
            TEST_MODE=\$mode FLARENA_ALLOCATOR=\$mode "\$@" env LD_PRELOAD=\$preload /limits \$limit \$call 2>&1
            statuses="\$statuses \$?"
        done
        echo "\$limit \$call\$statuses"
    done
}
calls cgroup2 env
echo 0 >/sys/fs/cgroup/cgroup.procs
calls locked prlimit --memlock=$((384 << 20)) setpriv --reuid=65534 --regid=65534 --clear-groups
echo 2 >/proc/sys/vm/overcommit_memory
echo \$((\$(sed -n 's/^Committed_AS: *\([0-9]*\) kB/\1/p' /proc/meminfo) + (384 << 10))) >/proc/sys/vm/overcommit_kbytes
calls commit env
END
}

run_machine() { # writes the lines to $SCRATCH/lines
    local container status=0
    docker image inspect flarena-test:bookworm >/dev/null 2>&1 || "$ROOT/scripts/docker/base-image.sh" bookworm ||
        { echo "no image can be made" && exit 77; }
    compile "$ROOT/tests/faults/limits.c" "$SCRATCH/limits"
    container=$(docker create flarena-test:bookworm)
    docker cp -q "$SCRATCH/limits" "$container:/limits" && docker cp -q "$LIB" "$container:/libflarena.so" &&
        docker commit "$container" $IMAGE
    docker rm "$container" >/dev/null
    "$ROOT/scripts/docker/cgroup2-vm.sh" $IMAGE $((384 << 20)) "max 100000" "$(make_script)" >"$SCRATCH/lines" || status=$?
    docker rmi $IMAGE >/dev/null
    cat "$SCRATCH/lines"
    [ $status -ne 77 ] || echo "the emulated machine did not end within $PATIENCE_SECONDS s"
    return $status
}

grants_in_machine() { # LIMIT: some calls are granted without the library, and those in both modes, too
    grep "^$1 " "$SCRATCH/lines" | tee "$SCRATCH/of-limit"
    [ "$(wc -l <"$SCRATCH/of-limit")" -eq "${#CALLS_UNDER_LIMIT[@]}" ]
    awk '$3 == 0 { granted++; if ($4 != 0 || $5 != 0) refused++ } END { exit granted <= 5 || refused > 0 }' "$SCRATCH/of-limit"
}

check "an emulated machine runs the calls" run_machine
if grep -q '^exit status 0' "$SCRATCH/lines" 2>/dev/null; then
    check "in cgroup v2 no call is killed that succeeds without the library" grants_in_machine cgroup2
    check "under a limit on locked memory no call is refused that is granted without the library" grants_in_machine locked
    check "with vm.overcommit_memory=2 no call is refused that is granted without the library" grants_in_machine commit
fi
finish
