# shellcheck shell=bash
# What tests/faults/run.sh and soak.sh share: programs under refusals, and what may not come of it.
# shellcheck source=tests/stress/programs.sh
. "$ROOT/tests/stress/programs.sh"

export COMMAND_TIMEOUT=120

build_programs() {
    gcc -std=gnu11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror "$ROOT/tests/faults/fail.c" -o "$SCRATCH/fail" || return 1
    build_stress "$SCRATCH/stress" || return 1
    compile "$ROOT/tests/faults/leaves.c" "$SCRATCH/leaves" && compile "$ROOT/tests/faults/marks.c" "$SCRATCH/marks" &&
        compile "$ROOT/tests/faults/no_memory.c" "$SCRATCH/no_memory"
}

# A library that panics at certain marks; none that is shipped does.
build_with_defect() {
    # What it is made of is compiled already.
    [ -d "$ROOT/target/defect" ] || { mkdir "$ROOT/target/defect" && cp -a "$ROOT/target/release" "$ROOT/target/defect/"; }
    (cd "$ROOT" && cargo build --quiet --release -p flarena-shim --features defect --target-dir target/defect) &&
        compile "$ROOT/tests/faults/defect.c" "$SCRATCH/defect"
}

# Not into a file: `finish` takes such a line for a defect that nobody provoked.
told_with_defect() { # MODE STATUS ENDED [STAGE]: the program's status, and its only line of the kind
    local mode=$1 expected=$2 ended=$3 told status=0
    shift 3
    told=$(FLARENA_ALLOCATOR=$mode TEST_MODE=$mode NVFLARE_CLIENT_MEMORY_PROFILE=1 LD_PRELOAD=$ROOT/target/defect/release/libflarena.so \
        "$SCRATCH/defect" "$@" 2>&1) || status=$?
    if [ "$status" -eq "$expected" ] && [ "$(grep -c 'internal error' <<<"$told")" -eq 1 ] &&
        grep -qE "^$OWN_DEFECT ended $ended" <<<"$told"; then
        return 0
    fi
    printf 'status %s: %s\n' "$status" "$told"
    return 1
}

# The library is for the command alone: `fail` is not under test.
fail_in() { # MODE [NAME=VALUE...] FAIL-OPTION... -- COMMAND...
    local mode=$1 settings=()
    shift
    while [[ $1 == [A-Z]*=* ]]; do
        settings+=("$1")
        shift
    done
    [ "$mode" = bare ] || settings+=(FLARENA_ALLOCATOR="$mode" FAIL_PRELOAD="$LIB")
    without_preload TEST_MODE="$mode" "${settings[@]}" "$SCRATCH/fail" "$@"
}

may_inject() { # 77 where the kernel or a sandbox has no user notification
    without_preload "$SCRATCH/fail" --calls=write --from=1000000 -- true || { echo "no user notification of seccomp"; return 77; }
}

is_crash() { # STATUS: ended by a signal, or by the time limit
    [ "$1" -ge 124 ] && [ "$1" -ne 126 ] && [ "$1" -ne 127 ]
}

said() { # what the program printed, for a failure
    tail -n 5 "$SCRATCH/out"
}

random_refusals() { # MODE CALL ERROR ONE-IN SEED [OPTION...]: the stress program, from its first operation
    local mode=$1 status=0
    local fail=(--calls="$2" --error="$3" --one-in="$4" --seed="$5" --armed)
    fail_in "$mode" "${fail[@]}" -- "$SCRATCH/stress" --refusals --seed="$5" --threads=3 "${@:6}" >"$SCRATCH/out" 2>&1 || status=$?
    [ "$status" -eq 0 ] && return
    echo "status $status with fail ${fail[*]}"
    said
    return 1
}

nth_refusal() { # MODE CALL ERROR N: a marker program, from its first instruction; the loader may give up, nobody may crash
    local status=0 file=$SCRATCH/markers.jsonl
    local fail=(--calls="$2" --error="$3" --from="$4")
    rm -f "$file"
    fail_in "$1" NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_MARKER_FILE="$file" "${fail[@]}" -- \
        "$SCRATCH/marks" 10 >"$SCRATCH/out" 2>&1 || status=$?
    # Some of the first calls are the loader's: then there is no library, or no process.
    if grep -qE 'ERROR: ld.so|error while loading|malloc of ' "$SCRATCH/out" || { is_crash "$status" && crashes_bare "${fail[@]}"; }; then
        return
    fi
    if is_crash "$status" || grep -q 'check failed' "$SCRATCH/out"; then
        echo "status $status with fail ${fail[*]}"
        said
        return 1
    fi
    [ ! -e "$file" ] || python3 "$ROOT/tests/faults/lines.py" "$file" "$status"
}

crashes_bare() { # FAIL-OPTION...
    local status=0
    fail_in bare "$@" -- "$SCRATCH/marks" 10 >"$SCRATCH/bare" 2>&1 || status=$?
    is_crash "$status"
}

# With NumPy where it can be had.
python() {
    local numpy
    numpy=$("$ROOT/scripts/venv.sh" 2.9.0 2>/dev/null) || { command -v python3; return; }
    echo "$numpy/bin/python"
}

python_refusal() { # MODE CALL ERROR N
    local status=0
    local fail=(--calls="$2" --error="$3" --from="$4" --armed)
    fail_in "$1" "${fail[@]}" -- "${PYTHON:=$(python)}" "$ROOT/tests/faults/program.py" >"$SCRATCH/out" 2>&1 || status=$?
    if is_crash "$status" || grep -q AssertionError "$SCRATCH/out"; then
        echo "status $status with fail ${fail[*]}"
        said
        return 1
    fi
}

# CALL:ERROR as a kernel, a sandbox or a full system answers.
PAIRS=(mmap:ENOMEM mremap:ENOMEM mremap:ENOSYS munmap:ENOMEM madvise:EPERM madvise:ENOMEM mprotect:ENOMEM clone:EAGAIN
    clone:EPERM open:EMFILE open:EACCES write:EIO write:ENOSPC socket:EPERM eventfd:EMFILE poll:ENOSYS mbind:EPERM)

random_of_each() { # MODE SEED OPERATIONS: each pair, one call in three and one in twenty
    local pair one_in
    for pair in "${PAIRS[@]}"; do
        for one_in in 3 20; do
            random_refusals "$1" "${pair%:*}" "${pair#*:}" "$one_in" "$2" --operations="$3"
        done
    done
}

nth_of_each() { # FUNCTION MODE N...: each pair, the N-th call
    local pair n
    for pair in "${PAIRS[@]}"; do
        for n in "${@:3}"; do
            "$1" "$2" "${pair%:*}" "${pair#*:}" "$n"
        done
    done
}

marked_under() { # MODE FILE COUNT [PREFIX...]: COUNT markers; what was reported written is in the file, and parses
    local mode=$1 file=$2 count=$3 status=0
    shift 3
    run_as "$mode" NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_MARKER_FILE="$file" "$@" "$SCRATCH/marks" "$count" >"$SCRATCH/out" 2>&1 || status=$?
    if is_crash "$status" || grep -q 'check failed' "$SCRATCH/out"; then
        echo "status $status"
        said
        return 1
    fi
    echo "$status"
}

# A sysctl as the command sees it, and as the machine keeps it: a mount that ends with the command.
# shellcheck disable=SC2016  # the inner shell expands it
AS_IF='[ "$(cat "/proc/sys/vm/$1")" = "$2" ] || { echo "$2" >"$3/$1" && mount --bind "$3/$1" "/proc/sys/vm/$1"; } || exit 77; shift 3; exec "$@"'

may_pretend() {
    unshare -m sh -c "$AS_IF" _ max_map_count 4096 "$SCRATCH" true 2>/dev/null || { echo "no right to mount"; return 77; }
}

few_mappings() { # MODE OPERATIONS: of 4096 the program leaves 60; fail refuses as the kernel does
    may_pretend || return
    fail_in "$1" --calls=mmap,munmap,mremap,mprotect,madvise --mappings=4096 --armed --report="$SCRATCH/refused" -- \
        unshare -m sh -c "$AS_IF" _ max_map_count 4096 "$SCRATCH" "$SCRATCH/stress" --refusals --mappings=4030 --threads=3 --operations="$2" \
        >"$SCRATCH/out" 2>&1 || { said; return 1; }
    # shellcheck disable=SC2034 # the calls that were looked at
    read -r seen refused <"$SCRATCH/refused"
    echo "$refused calls refused"
    [ "$refused" -gt 0 ]
}

# Each mapping takes so long that a fork meets a thread in the middle of one; with retain another lock would hide it.
slow_mappings() { # MODE
    fail_in "$1" FLARENA_RECYCLE=off MALLOC_CONF=retain:false --calls=mmap --slow=5 --armed -- "$SCRATCH/leaves"
}

# What vm.overcommit_memory=2 refuses, RLIMIT_DATA refuses to one process: private writable mappings that nobody wrote yet.
no_overcommit() { # MODE OPERATIONS
    may_pretend || return
    # shellcheck disable=SC2016  # the inner shell expands it
    run_as "$1" NVFLARE_CLIENT_MEMORY_PROFILE=0 sh -c 'ulimit -d 300000; exec "$@"' _ \
        unshare -m sh -c "$AS_IF" _ overcommit_memory 2 "$SCRATCH" "$SCRATCH/stress" --refusals --threads=3 --operations="$2" \
        >"$SCRATCH/out" 2>&1 || { said; return 1; }
}

# There a range of ours is unmapped before it is mapped anew, and may be lost.
lost_ranges() { # MODE OPERATIONS
    may_pretend || return
    local one_in
    for one_in in 3 20; do
        fail_in "$1" --calls=mmap --one-in="$one_in" --seed="$RANDOM" --armed -- \
            unshare -m sh -c "$AS_IF" _ overcommit_memory 2 "$SCRATCH" "$SCRATCH/stress" --refusals --threads=3 --operations="$2" \
            >"$SCRATCH/out" 2>&1 || { said; return 1; }
    done
}

no_memory() { # MODE
    run_as "$1" NVFLARE_CLIENT_MEMORY_PROFILE=1 "$SCRATCH/no_memory" >"$SCRATCH/out" 2>&1 || { said; return 1; }
    grep -q "r=99 no memory: " "$SCRATCH/out"
}

make_group() { # MEGABYTES: a control group, at $GROUP
    local groups=/sys/fs/cgroup/memory file=memory.limit_in_bytes
    [ -e $groups/$file ] || groups=/sys/fs/cgroup file=memory.max
    GROUP=$groups/flarena-faults-$$
    if ! mkdir "$GROUP" 2>/dev/null || ! echo "$1M" 2>/dev/null >"$GROUP/$file"; then
        rmdir "$GROUP" 2>/dev/null
        echo "no right to make a control group"
        return 77
    fi
}

in_group() { # BADNESS COMMAND...
    echo "$1" >"/proc/$BASHPID/oom_score_adj"
    echo "$BASHPID" >"$GROUP/cgroup.procs"
    exec "${@:2}"
}

killed_neighbour() { # MODE SECONDS: whoever takes too much is ended beside it
    local file=$SCRATCH/group.jsonl kills=0 status=0 pid hog
    rm -f "$file"
    make_group 400 || return
    (in_group 0 env LD_PRELOAD="$LIB" FLARENA_ALLOCATOR="$1" TEST_MODE="$1" NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_MARKER_FILE="$file" \
        "$SCRATCH/stress" --threads=2 --live=32 --seconds="$2" --without=huge --refusals) >"$SCRATCH/out" 2>&1 &
    pid=$!
    while kill -0 "$pid" 2>/dev/null; do
        (in_group 1000 python3 -c 'b = bytearray(b"x") * (1 << 30)') 2>/dev/null || hog=$?
        kills=$((kills + (${hog:-0} == 137)))
    done
    wait "$pid" || status=$?
    rmdir "$GROUP"
    echo "status $status, $kills neighbours killed"
    said
    [ "$status" -eq 0 ] && [ "$kills" -gt 0 ] && python3 "$ROOT/tests/faults/lines.py" "$file" 1
}

full_disk() { # MODE: a file system of 16 KiB
    mkdir -p "$SCRATCH/tiny"
    mount -t tmpfs -o size=16k tmpfs "$SCRATCH/tiny" 2>/dev/null || { echo "no right to mount"; return 77; }
    local written status=0
    written=$(marked_under "$1" "$SCRATCH/tiny/markers" 100) || status=1
    # A line that did not fit is taken back; it was not reported written.
    [ "$status" -ne 0 ] || python3 "$ROOT/tests/faults/lines.py" "$SCRATCH/tiny/markers" "$written" || status=1
    umount "$SCRATCH/tiny"
    [ "$status" -eq 0 ] && [ "$written" -lt 100 ]
}

# Root's threads are not counted: there it is somebody else who has no right to one more.
AS_ANYBODY=()
[ "$(id -u)" -ne 0 ] || AS_ANYBODY=(setpriv --reuid=65534 --regid=65534 --clear-groups)

under_limit() { # MODE LIMIT VALUE: as prlimit names it; the program itself sees that it bites, a file's limit costs markers
    local place=$SCRATCH/limited file=$SCRATCH/limited/markers.jsonl written
    command -v setpriv prlimit >/dev/null || { echo "needs setpriv and prlimit"; return 77; }
    mkdir -p "$place"
    chmod 711 "$SCRATCH"
    chmod 777 "$place"
    cp "$LIB" "$place/libflarena.so"
    rm -f "$file"
    # The commands before the program write no markers: the file is not theirs to make.
    written=$(marked_under "$1" "$file" 50 LD_PRELOAD="$place/libflarena.so" UNDER_LIMIT="$2" NVFLARE_CLIENT_MEMORY_PROFILE=0 \
        "${AS_ANYBODY[@]}" prlimit "--$2=$3" env NVFLARE_CLIENT_MEMORY_PROFILE=1)
    echo "$written of 50 markers were reported written"
    [ ! -e "$file" ] || python3 "$ROOT/tests/faults/lines.py" "$file" "$written"
    if [ "$2" = fsize ]; then [ "$written" -lt 50 ]; else [ "$written" -eq 50 ]; fi
}

killed_while_marking() { # MODE TURNS: whatever moment SIGKILL comes, no line is half
    local turn file=$SCRATCH/killed.jsonl pid
    rm -f "$file"
    for ((turn = 0; turn < $2; turn++)); do
        # No time limit around it: the signal is for the program itself.
        env LD_PRELOAD="$LIB" FLARENA_ALLOCATOR="$1" TEST_MODE="$1" NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_MARKER_FILE="$file" \
            "$SCRATCH/marks" 2000 >/dev/null 2>&1 &
        pid=$!
        sleep "0.$((RANDOM % 300 + 100))"
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" || true
    done
    [ -s "$file" ] && python3 "$ROOT/tests/faults/lines.py" "$file"
}
