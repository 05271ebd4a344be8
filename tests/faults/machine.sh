#!/usr/bin/env bash
# Limits that need a machine of their own: cgroup v2 without swap, locked memory, and strict overcommit. It is emulated,
# so a program takes minutes that takes a second elsewhere.
#
#   tests/faults/machine.sh [calls] [sweep]       single calls under each limit; whole programs under limits of cgroup v2
cd "$(dirname "$0")" || exit 1
# shellcheck source=tests/check.sh
. ../check.sh
# shellcheck source=tests/faults/faults.sh
. ./faults.sh

IMAGE=flarena-test:limits
export PATIENCE_SECONDS=${PATIENCE_SECONDS:-20000} # the sweep has 45 runs of at most 400 s
# Programs of bench/, and limits at which the contenders differ.
SWEEP=('fl_rounds:192,240,288' 'records:192,240,288' 'joblib:320,352,384')

# One line for each limit and call: the exit statuses without the library, in glibc mode and in jemalloc mode.
calls_script() {
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

sweep_script() {
    cat <<END
echo 0 >/sys/fs/cgroup/cgroup.procs
PATH=/usr/bin:/bin TIMEOUT_S=400 PYTHONPATH=/site python3 /sweep.py /bench /libflarena.so /flarena/hooks ${SWEEP[*]}
END
}

make_image() {
    local container files=$SCRATCH/files
    docker image inspect flarena-test:bookworm >/dev/null 2>&1 || "$ROOT/scripts/docker/base-image.sh" bookworm ||
        { echo "no image can be made" && exit 77; }
    mkdir -p "$files" "$ROOT/build/limits"
    compile "$ROOT/tests/faults/limits.c" "$files/limits"
    cp -r "$ROOT/bench" "$ROOT/src/python/flarena" sweep.py "$files"
    cp "$LIB" "$files/libflarena.so"
    cp "$ROOT/scripts/bench/cgroup.py" "$files/bench"
    if [ ! -d "$ROOT/build/limits/site" ]; then
        python3 -m pip --version || { echo "needs pip" && exit 77; }
        python3 -m pip install --quiet --disable-pip-version-check --only-binary=:all: --python-version 3.11 \
            --target "$ROOT/build/limits/site" numpy joblib==1.5.2
    fi
    cp -r "$ROOT/build/limits/site" "$files"
    container=$(docker create flarena-test:bookworm)
    docker cp -q "$files/." "$container:/"
    docker commit "$container" $IMAGE
    docker rm "$container"
}

run_machine() { # PART: writes the lines to build/limits/PART
    local status=0 lines=$ROOT/build/limits/$1
    "$ROOT/scripts/docker/cgroup2-vm.sh" $IMAGE $((384 << 20)) "max 100000" "$("$1_script")" \
        >"$lines" 2>"$SCRATCH/reason" || status=$?
    cat "$lines" "$SCRATCH/reason"
    [ $status -eq 0 ] || return $status
    grep -q '^exit status 0' "$lines"
}

grants_in_machine() { # LIMIT: some calls are granted without the library, and those in both modes, too
    grep "^$1 " "$ROOT/build/limits/calls" | tee "$SCRATCH/of-limit"
    [ "$(wc -l <"$SCRATCH/of-limit")" -eq "${#CALLS_UNDER_LIMIT[@]}" ]
    awk '$3 == 0 { granted++; if ($4 != 0 || $5 != 0) refused++ } END { exit granted <= 5 || refused > 0 }' "$SCRATCH/of-limit"
}

survives_in_machine() { # PROGRAM: both modes survive where another contender does, and one does at one limit
    grep "^$1 " "$ROOT/build/limits/sweep" | tee "$SCRATCH/of-program"
    awk '$4 == "survives" { if ($3 ~ /^flarena/) modes[$2]++; else others[$2]++ }
        END { for (limit in others) { limits++; if (modes[limit] != 2) worse++ } exit !limits || worse > 0 }' "$SCRATCH/of-program"
}

[ $# -gt 0 ] || set -- calls sweep
check "an image for the emulated machine is made" make_image
[ "$PASSED" -eq 1 ] || { finish; exit; }
for part in "$@"; do
    check "an emulated machine runs the $part" run_machine "$part"
    grep -q '^exit status 0' "$ROOT/build/limits/$part" 2>/dev/null || continue
    if [ "$part" = calls ]; then
        check "in cgroup v2 no call is killed that succeeds without the library" grants_in_machine cgroup2
        check "under a limit on locked memory no call is refused that is granted without the library" grants_in_machine locked
        check "with vm.overcommit_memory=2 no call is refused that is granted without the library" grants_in_machine commit
    else
        for program in "${SWEEP[@]%%:*}"; do
            check "in cgroup v2 $program survives each limit that it survives without flarena" survives_in_machine "$program"
        done
    fi
done
docker rmi $IMAGE >/dev/null
finish
