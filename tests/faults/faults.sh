# shellcheck shell=bash
# Runs programs under failing system calls and limits. For tests/faults/run.sh and soak.sh.
# shellcheck source=tests/stress/programs.sh
. "$ROOT/tests/stress/programs.sh"

export COMMAND_TIMEOUT=240

build_programs() {
    gcc -std=gnu11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror "$ROOT/tests/faults/fail.c" -o "$SCRATCH/fail" || return 1
    build_stress "$SCRATCH/stress" || return 1
    compile "$ROOT/tests/faults/fork_while_mapping.c" "$SCRATCH/fork_while_mapping" &&
        compile "$ROOT/tests/faults/write_markers.c" "$SCRATCH/write_markers" &&
        compile "$ROOT/tests/faults/no_memory.c" "$SCRATCH/no_memory" &&
        compile "$ROOT/tests/faults/unread_group.c" "$SCRATCH/unread_group" &&
        compile "$ROOT/tests/faults/at_limit.c" "$SCRATCH/at_limit" &&
        compile "$ROOT/tests/faults/limits.c" "$SCRATCH/limits"
}

# A library that panics at certain stages. The feature is off in releases.
build_with_defect() {
    # The copy saves compiling the dependencies again.
    [ -d "$ROOT/target/defect" ] || { mkdir "$ROOT/target/defect" && cp -a "$ROOT/target/release" "$ROOT/target/defect/"; }
    (cd "$ROOT" && cargo build --quiet --release -p flarena-shim --features defect --target-dir target/defect) &&
        compile "$ROOT/tests/faults/defect.c" "$SCRATCH/defect" &&
        compile "$ROOT/tests/faults/defect_in_governor.c" "$SCRATCH/defect_in_governor"
}

# The output stays in a variable: `finish` reports such a line in a file as an unexpected defect.
reports_defect() { # MODE STATUS ENDED PROGRAM [STAGE]: checks the exit status, and that one line reports the panic
    local mode=$1 expected=$2 ended=$3 output status=0
    shift 3
    output=$(FLARENA_ALLOCATOR=$mode TEST_MODE=$mode NVFLARE_CLIENT_MEMORY_PROFILE=1 LD_PRELOAD=$ROOT/target/defect/release/libflarena.so \
        "$SCRATCH/$1" "${@:2}" 2>&1) || status=$?
    if [ "$status" -eq "$expected" ] && [ "$(grep -c 'internal error' <<<"$output")" -eq 1 ] &&
        grep -qE "^$OWN_DEFECT ended $ended" <<<"$output"; then
        return 0
    fi
    printf 'status %s: %s\n' "$status" "$output"
    return 1
}

# The library is preloaded into the command only, not into fail.
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

may_inject() { # 77 if the kernel or a sandbox does not support user notification
    without_preload "$SCRATCH/fail" --calls=write --from=1000000 -- true || { echo "seccomp's user notification is not available"; return 77; }
}

is_crash() { # STATUS: of a program that was ended by a signal or by the time limit
    [ "$1" -ge 124 ] && [ "$1" -ne 126 ] && [ "$1" -ne 127 ]
}

show_output() { # the last lines of the program
    tail -n 5 "$SCRATCH/out"
}

random_failures() { # MODE CALL ERROR ONE-IN SEED [OPTION...]: of the stress program, from its first operation
    local mode=$1 status=0
    local fail=(--calls="$2" --error="$3" --one-in="$4" --seed="$5" --armed)
    fail_in "$mode" "${fail[@]}" -- "$SCRATCH/stress" --failures --seed="$5" --threads=3 "${@:6}" >"$SCRATCH/out" 2>&1 || status=$?
    [ "$status" -eq 0 ] && return
    echo "status $status with fail ${fail[*]}"
    show_output
    return 1
}

nth_failure() { # MODE CALL ERROR N: of the marker program, from its start. The loader may fail, but must not crash.
    local status=0 file=$SCRATCH/markers.jsonl
    local fail=(--calls="$2" --error="$3" --from="$4" --report="$SCRATCH/report")
    rm -f "$file"
    fail_in "$1" NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_MARKER_FILE="$file" "${fail[@]}" -- \
        "$SCRATCH/write_markers" 10 >"$SCRATCH/out" 2>&1 || status=$?
    # The loader makes some of the first calls. If one fails, the library or the process does not start.
    if grep -qE 'ERROR: ld.so|error while loading|malloc belongs to ' "$SCRATCH/out" || { is_crash "$status" && crashes_bare "${fail[@]}"; }; then
        return
    fi
    if is_crash "$status" || grep -q 'check failed' "$SCRATCH/out"; then
        echo "status $status with fail ${fail[*]}"
        show_output
        return 1
    fi
    [ ! -e "$file" ] || python3 "$ROOT/tests/faults/check_markers.py" "$file" "$status"
}

crashes_bare() { # FAIL-OPTION...
    local status=0
    fail_in bare "$@" -- "$SCRATCH/write_markers" 10 >"$SCRATCH/bare" 2>&1 || status=$?
    is_crash "$status"
}

# A Python with NumPy if it can be installed.
python() {
    local numpy
    numpy=$("$ROOT/scripts/venv.sh" 2.9.0 2>/dev/null) || { command -v python3; return; }
    echo "$numpy/bin/python"
}

python_failure() { # MODE CALL ERROR N
    local status=0
    local fail=(--calls="$2" --error="$3" --from="$4" --armed --report="$SCRATCH/report")
    fail_in "$1" "${fail[@]}" -- "${PYTHON:=$(python)}" "$ROOT/tests/faults/program.py" >"$SCRATCH/out" 2>&1 || status=$?
    if is_crash "$status" || grep -q AssertionError "$SCRATCH/out"; then
        echo "status $status with fail ${fail[*]}"
        show_output
        return 1
    fi
}

# CALL:ERROR: errors that a kernel, a sandbox or an exhausted system returns.
PAIRS=(mmap:ENOMEM mremap:ENOMEM mremap:ENOSYS munmap:ENOMEM madvise:EPERM madvise:ENOMEM mprotect:ENOMEM clone:EAGAIN
    clone:EPERM open:EMFILE open:EACCES write:EIO write:ENOSPC socket:EPERM eventfd:EMFILE poll:ENOSYS mbind:EPERM)

random_of_each() { # MODE SEED OPERATIONS: for each pair, one call in three fails, then one in twenty
    local pair one_in
    for pair in "${PAIRS[@]}"; do
        for one_in in 3 20; do
            random_failures "$1" "${pair%:*}" "${pair#*:}" "$one_in" "$2" --operations="$3"
        done
    done
}

nth_of_each() { # FUNCTION MODE N...: for each pair, the N-th call fails
    local pair n
    for pair in "${PAIRS[@]}"; do
        for n in "${@:3}"; do
            "$1" "$2" "${pair%:*}" "${pair#*:}" "$n"
        done
    done
}

# Adds the number of runs in which a call failed to the file `failed-calls`.
each_call_in_turn() { # FUNCTION MODE CALL ERROR MOST: call 1 to MOST fails, until the program makes no more such calls
    local n failed runs_without=0
    for ((n = 1; n <= $5 && runs_without < 3; n++)); do
        "$1" "$2" "$3" "$4" "$n"
        read -r _ failed <"$SCRATCH/report"
        # The number of calls differs a little from run to run: a thread makes some of them by the clock.
        if [ "$failed" -gt 0 ]; then runs_without=0; else runs_without=$((runs_without + 1)); fi
    done
    echo $((n - 1 - runs_without)) >>"$SCRATCH/failed-calls"
}

write_markers() { # MODE FILE COUNT [PREFIX...]: tries to write COUNT markers, and prints how many were reported as written
    local mode=$1 file=$2 count=$3 status=0
    shift 3
    run_as "$mode" NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_MARKER_FILE="$file" "$@" "$SCRATCH/write_markers" "$count" >"$SCRATCH/out" 2>&1 || status=$?
    if is_crash "$status" || grep -q 'check failed' "$SCRATCH/out"; then
        echo "status $status"
        show_output
        return 1
    fi
    echo "$status"
}

# Lets the command see this value of a sysctl: a file is mounted over it in the command's own mount namespace, unless the
# machine has the value. The library reads the value, and fail or a limit makes calls fail as the kernel would.
# shellcheck disable=SC2016  # the inner shell expands it
WITH_SYSCTL='[ "$(cat "/proc/sys/vm/$1")" = "$2" ] || { echo "$2" >"$3/$1" && mount --bind "$3/$1" "/proc/sys/vm/$1"; } || exit 77; shift 3; exec "$@"'

may_mount() {
    unshare -m sh -c "$WITH_SYSCTL" _ max_map_count 4096 "$SCRATCH" true 2>/dev/null || { echo "this user may not mount"; return 77; }
}

few_mappings() { # MODE OPERATIONS: the program holds all but 60 of 4096 mappings, and further ones fail
    may_mount || return
    fail_in "$1" --calls=mmap,munmap,mremap,mprotect,madvise --mappings=4096 --armed --report="$SCRATCH/report" -- \
        unshare -m sh -c "$WITH_SYSCTL" _ max_map_count 4096 "$SCRATCH" "$SCRATCH/stress" --failures --mappings=4030 --threads=3 --operations="$2" \
        >"$SCRATCH/out" 2>&1 || { show_output; return 1; }
    # shellcheck disable=SC2034 # all counted calls
    read -r seen failed <"$SCRATCH/report"
    echo "$failed of $seen calls failed"
    [ "$failed" -gt 0 ]
}

# Each mmap takes 5 ms, so that a fork happens during one. With retain:true another lock of jemalloc would delay the fork.
slow_mappings() { # MODE
    fail_in "$1" FLARENA_RECYCLE=off MALLOC_CONF=retain:false --calls=mmap --slow=5 --armed -- "$SCRATCH/fork_while_mapping"
}

# vm.overcommit_memory=2 refuses private writable mappings that are not yet written. RLIMIT_DATA does that to one process.
no_overcommit() { # MODE OPERATIONS
    may_mount || return
    # shellcheck disable=SC2016  # the inner shell expands it
    run_as "$1" NVFLARE_CLIENT_MEMORY_PROFILE=0 sh -c 'ulimit -d 300000; exec "$@"' _ \
        unshare -m sh -c "$WITH_SYSCTL" _ overcommit_memory 2 "$SCRATCH" "$SCRATCH/stress" --failures --threads=3 --operations="$2" \
        >"$SCRATCH/out" 2>&1 || { show_output; return 1; }
}

# With vm.overcommit_memory=2 the recycler unmaps a range before it maps it again, and loses it if that fails.
lost_ranges() { # MODE OPERATIONS
    may_mount || return
    local one_in
    for one_in in 3 20; do
        fail_in "$1" --calls=mmap --one-in="$one_in" --seed="$RANDOM" --armed -- \
            unshare -m sh -c "$WITH_SYSCTL" _ overcommit_memory 2 "$SCRATCH" "$SCRATCH/stress" --failures --threads=3 --operations="$2" \
            >"$SCRATCH/out" 2>&1 || { show_output; return 1; }
    done
}

CALLS_UNDER_LIMIT=(small mid large small_calloc large_calloc small_realloc large_realloc memalign mmap mlock fork exec threads)
REFUSED=3
KILLED=137

call_under_limit() { # MODE LIMIT CALL [NAME=VALUE...]: its exit status is 3 if the call is refused
    local prefix=() status=0
    case $2 in
        cgroup)
            make_group 384 || return
            # shellcheck disable=SC2016  # the inner shell expands it
            prefix=(sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$GROUP")
            ;;
        locked)
            open_to_others
            [ "$1" = bare ] || prefix=(env LD_PRELOAD="$SCRATCH/libflarena.so")
            prefix=(prlimit --memlock=$((384 << 20)) "${AS_OTHER_USER[@]}" "${prefix[@]}")
            "${prefix[@]}" true || { echo "the limit of locked memory cannot be raised"; return 77; }
            ;;
    esac
    run_as "$1" "${@:4}" "${prefix[@]}" "$SCRATCH/limits" "$2" "$3" 2>"$SCRATCH/out" || status=$?
    [ "$2" != cgroup ] || rmdir "$GROUP"
    return "$status"
}

open_to_others() { # lets another user run the programs and read the library
    chmod 711 "$SCRATCH"
    cp "$LIB" "$SCRATCH/libflarena.so"
}

granted_bare() { # LIMIT: sets GRANTED to the calls that are granted without the library
    local call status list=$SCRATCH/granted-$1
    if [ ! -e "$list" ]; then
        for call in "${CALLS_UNDER_LIMIT[@]}"; do
            status=0
            call_under_limit bare "$1" "$call" || status=$?
            case $status in
                0) echo "$call" ;;
                "$REFUSED" | "$KILLED") ;;
                *) cat "$SCRATCH/out" >&2; return "$status" ;;
            esac
        done >"$list.new"
        mv "$list.new" "$list"
    fi
    mapfile -t GRANTED <"$list"
}

grants_as_bare() { # MODE LIMIT [NAME=VALUE...]: with half of the limit freed, no call is refused that bare grants
    local call status failed=0
    granted_bare "$2" || return
    [ "${#GRANTED[@]}" -gt 5 ] || { echo "without the library only these calls are granted: ${GRANTED[*]}"; return 1; }
    for call in "${GRANTED[@]}"; do
        status=0
        call_under_limit "$1" "$2" "$call" "${@:3}" || status=$?
        [ "$status" -eq 0 ] && continue
        echo "$call: exit status $status"
        show_output
        failed=1
    done
    return "$failed"
}

no_memory() { # MODE
    run_as "$1" NVFLARE_CLIENT_MEMORY_PROFILE=1 "$SCRATCH/no_memory" >"$SCRATCH/out" 2>&1 || { show_output; return 1; }
    grep -q "r=99 no memory: " "$SCRATCH/out"
}

in_group() { # BADNESS COMMAND...
    echo "$1" >"/proc/$BASHPID/oom_score_adj"
    echo "$BASHPID" >"$GROUP/cgroup.procs"
    exec "${@:2}"
}

in_small_group() { # MODE [NAME=VALUE...] PROGRAM...: its exit status, and its stderr in $SCRATCH/out
    local status=0
    make_group 256 || return
    (in_group 0 env LD_PRELOAD="$LIB" FLARENA_ALLOCATOR="$1" TEST_MODE="$1" "${@:2}") >"$SCRATCH/out" 2>&1 || status=$?
    rmdir "$GROUP"
    return "$status"
}

refused_at_limit() { # MODE
    in_small_group "$1" FLARENA_AT_LIMIT=fail "$SCRATCH/at_limit" || { show_output; return 1; }
}

refused_while_bare_is_killed() { # MODE MEGABYTES
    local status=0
    in_small_group "$1" FLARENA_AT_LIMIT=off "$SCRATCH/at_limit" "$2" || status=$?
    [ "$status" -ne 77 ] || return 77
    if [ "$status" -ne "$KILLED" ] || [ -s "$SCRATCH/out" ]; then
        echo "status $status"
        show_output
        return 1
    fi
    status=0
    in_small_group "$1" FLARENA_AT_LIMIT=fail "$SCRATCH/at_limit" "$2" || status=$?
    [ "$status" -eq "$REFUSED" ] || { echo "status $status"; show_output; return 1; }
}

last_words() { # MODE: a line, and a marker with the same sizes
    local file=$SCRATCH/last.jsonl status=0
    rm -f "$file"
    in_small_group "$1" NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_MARKER_FILE="$file" "$SCRATCH/at_limit" 24 || status=$?
    [ "$status" -ne 77 ] || return 77
    grep -E "^flarena: 24.0 MB asked, [0-9.]+ MB left .* FLARENA_AT_LIMIT=fail" "$SCRATCH/out" || { show_output; return 1; }
    [ "$status" -eq "$KILLED" ] && python3 - "$file" <<'END'
import json, sys
markers = [json.loads(line) for line in open(sys.argv[1])]
last = [marker for marker in markers if marker["stage"] != "periodic"][-1]
assert last["stage"] == "at_limit" and last["asked_bytes"] == 24 << 20 and last["left_bytes"] < 24 << 20, markers
END
}

killed_neighbour() { # MODE SECONDS: the kernel kills processes of the same control group that allocate too much
    local file=$SCRATCH/group.jsonl kills=0 status=0 pid hog
    rm -f "$file"
    make_group 400 || return
    (in_group 0 env LD_PRELOAD="$LIB" FLARENA_ALLOCATOR="$1" TEST_MODE="$1" NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_MARKER_FILE="$file" \
        "$SCRATCH/stress" --threads=2 --live=32 --seconds="$2" --without=huge --failures) >"$SCRATCH/out" 2>&1 &
    pid=$!
    while kill -0 "$pid" 2>/dev/null; do
        (in_group 1000 python3 -c 'b = bytearray(b"x") * (1 << 30)') 2>/dev/null || hog=$?
        kills=$((kills + (${hog:-0} == 137)))
    done
    wait "$pid" || status=$?
    rmdir "$GROUP"
    echo "status $status, $kills neighbours killed"
    show_output
    [ "$status" -eq 0 ] && [ "$kills" -gt 0 ] && python3 "$ROOT/tests/faults/check_markers.py" "$file" 1
}

unread_group() { # MODE
    local status=0
    make_group 256 || return
    (in_group 0 env LD_PRELOAD="$LIB" FLARENA_ALLOCATOR="$1" TEST_MODE="$1" FLARENA_GOVERNOR=off MALLOC_CONF=dirty_decay_ms:-1 \
        "$SCRATCH/unread_group") >"$SCRATCH/out" 2>&1 || status=$?
    rmdir "$GROUP"
    show_output
    return $status
}

full_disk() { # MODE: a file system of 16 KiB
    mkdir -p "$SCRATCH/tiny"
    mount -t tmpfs -o size=16k tmpfs "$SCRATCH/tiny" 2>/dev/null || { echo "this user may not mount"; return 77; }
    local written status=0
    written=$(write_markers "$1" "$SCRATCH/tiny/markers" 100) || status=1
    # A line that does not fit is removed, and not reported as written.
    [ "$status" -ne 0 ] || python3 "$ROOT/tests/faults/check_markers.py" "$SCRATCH/tiny/markers" "$written" || status=1
    umount "$SCRATCH/tiny"
    [ "$status" -eq 0 ] && [ "$written" -lt 100 ]
}

# The limit of threads does not apply to root.
AS_OTHER_USER=()
[ "$(id -u)" -ne 0 ] || AS_OTHER_USER=(setpriv --reuid=65534 --regid=65534 --clear-groups)

under_limit() { # MODE LIMIT VALUE: for prlimit. The program checks that the limit applies; only fsize may lose markers.
    local place=$SCRATCH/limited file=$SCRATCH/limited/markers.jsonl written
    command -v setpriv prlimit >/dev/null || { echo "needs setpriv and prlimit"; return 77; }
    mkdir -p "$place"
    chmod 711 "$SCRATCH"
    chmod 777 "$place"
    cp "$LIB" "$place/libflarena.so"
    rm -f "$file"
    # setpriv and prlimit write no markers, because they run as root and would create the file.
    written=$(write_markers "$1" "$file" 50 LD_PRELOAD="$place/libflarena.so" UNDER_LIMIT="$2" NVFLARE_CLIENT_MEMORY_PROFILE=0 \
        "${AS_OTHER_USER[@]}" prlimit "--$2=$3" env NVFLARE_CLIENT_MEMORY_PROFILE=1)
    echo "$written of 50 markers were reported as written"
    [ ! -e "$file" ] || python3 "$ROOT/tests/faults/check_markers.py" "$file" "$written"
    if [ "$2" = fsize ]; then [ "$written" -lt 50 ]; else [ "$written" -eq 50 ]; fi
}

killed_while_writing() { # MODE ROUNDS: SIGKILL at a random moment leaves no partial line
    local round file=$SCRATCH/killed.jsonl pid
    rm -f "$file"
    for ((round = 0; round < $2; round++)); do
        # Without timeout, so that the signal reaches the program itself.
        env LD_PRELOAD="$LIB" FLARENA_ALLOCATOR="$1" TEST_MODE="$1" NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_MARKER_FILE="$file" \
            "$SCRATCH/write_markers" 2000 >/dev/null 2>&1 &
        pid=$!
        sleep "0.$((RANDOM % 300 + 100))"
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" || true
    done
    [ -s "$file" ] && python3 "$ROOT/tests/faults/check_markers.py" "$file"
}
