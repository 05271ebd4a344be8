# shellcheck shell=bash
# Runs programs under failing system calls and limits. For tests/faults/run.sh and soak.sh.

export COMMAND_TIMEOUT=240

build_programs() {
    gcc -std=gnu11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror "$ROOT/tests/faults/fail.c" -o "$SCRATCH/fail" || return 1
    build_stress "$SCRATCH/stress" && compile_each fork_while_mapping write_markers no_memory at_limit limits
}

compile_each() { # NAME...
    local name
    for name; do compile "$ROOT/tests/faults/$name.c" "$SCRATCH/$name" || return; done
}

# A library that panics at certain stages. The feature is off in releases.
build_with_defect() { # [NAME=VALUE...]: for cargo
    (
        cd "$ROOT" || return
        # shellcheck source=scripts/first_dev_build.sh
        . scripts/first_dev_build.sh
        use_jemalloc_of_release
        export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
        env "$@" cargo build --quiet --release -p flarena-shim --features defect --target-dir target/defect
    ) && compile_each defect defect_in_governor
}

# The output stays in a variable: `finish` reports such a line in a file as an unexpected defect.
reports_defect() { # MODE STATUS ENDED PROGRAM [STAGE]: checks the exit status, and that one line reports the panic
    local mode=$1 expected=$2 ended=$3 output status=0
    shift 3
    output=$(FLARENA_ALLOCATOR=$mode TEST_MODE=$mode NVFLARE_CLIENT_MEMORY_PROFILE=1 LD_PRELOAD=$ROOT/target/defect/release/libflarena.so \
        "$SCRATCH/$1" "${@:2}" 2>&1) || status=$?
    if ! [[ $status -eq $expected && $(grep -c 'internal error' <<<"$output") -eq 1 && $output =~ $OWN_DEFECT\ ended\ $ended ]]; then
        printf 'status %s: %s\n' "$status" "$output"
        return 1
    fi
}

check_defect() { # [NAME=VALUE...]: for cargo
    local mode
    check "the library with the feature defect compiles" build_with_defect "$@"
    for mode in glibc jemalloc; do
        check "$mode: $(sentence_of "$ROOT/tests/faults/defect.c")" reports_defect "$mode" 0 "a call" defect
        check "$mode: $(sentence_of "$ROOT/tests/faults/defect_in_governor.c")" reports_defect "$mode" 0 "the governor's thread" defect_in_governor
        check "$mode: a panic elsewhere ends the program, with one line that names file and line" reports_defect "$mode" 134 "the program" defect "defect elsewhere"
        check "$mode: a panic under the recycler's lock ends the program" reports_defect "$mode" 134 "the program" defect "defect with the lock"
    done
}

# The library is preloaded into the command only, not into fail.
fail_in() { # MODE [NAME=VALUE...] FAIL-OPTION... -- COMMAND...
    local SETTINGS WORDS
    split_settings "${@:2}"
    [ "$1" = bare ] || SETTINGS+=(FLARENA_ALLOCATOR="$1" FAIL_PRELOAD="$LIB")
    without_preload TEST_MODE="$1" "${SETTINGS[@]}" "$SCRATCH/fail" "${WORDS[@]}"
}

may_inject() { # 77 if the kernel or a sandbox does not support user notification
    without_preload "$SCRATCH/fail" --calls=write --from=1000000 -- true || { echo "seccomp's user notification is not available"; return 77; }
}

is_crash() { # STATUS: of a program that was ended by a signal or by the time limit
    [ "$1" -ge 124 ] && [ "$1" -ne 126 ] && [ "$1" -ne 127 ]
}

fail_with() { # TEXT: prints it and the last lines of the program, and fails
    echo "$@"
    tail -n 5 "$SCRATCH/out"
    return 1
}

random_failures() { # MODE CALL ERROR ONE-IN SEED [OPTION...]: of the stress program, from its first operation
    local mode=$1 status=0
    local fail=(--calls="$2" --error="$3" --one-in="$4" --seed="$5" --armed)
    fail_in "$mode" "${fail[@]}" -- "$SCRATCH/stress" --failures --seed="$5" --threads=3 "${@:6}" >"$SCRATCH/out" 2>&1 || status=$?
    [ "$status" -eq 0 ] || fail_with "status $status with fail ${fail[*]}"
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
        fail_with "status $status with fail ${fail[*]}"
        return
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
    if is_crash "$status" || grep -q AssertionError "$SCRATCH/out"; then fail_with "status $status with fail ${fail[*]}"; fi
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
        fail_with "status $status"
        return
    fi
    echo "$status"
}

# Lets the command see this value of a sysctl: a file is mounted over it in the command's own mount namespace, unless the
# machine has the value. The library reads the value, and fail or a limit makes calls fail as the kernel would.
# shellcheck disable=SC2016  # the inner shell expands it
WITH_SYSCTL='[ "$(cat "/proc/sys/vm/$1")" = "$2" ] || { echo "$2" >"$3/$1" && mount --bind "$3/$1" "/proc/sys/vm/$1"; } || exit 77; shift 3; exec "$@"'

with_sysctl() { # NAME VALUE OPTIONS-OF-STRESS RUNNER...: runs the stress program
    unshare -m sh -c "$WITH_SYSCTL" _ max_map_count 4096 "$SCRATCH" true 2>/dev/null || { echo "this user may not mount"; return 77; }
    # shellcheck disable=SC2086  # a list of options
    "${@:4}" unshare -m sh -c "$WITH_SYSCTL" _ "$1" "$2" "$SCRATCH" "$SCRATCH/stress" --failures --threads=3 $3 \
        >"$SCRATCH/out" 2>&1 || fail_with "status $?"
}

few_mappings() { # MODE OPERATIONS: the program holds all but 60 of 4096 mappings, and further ones fail
    local seen failed
    with_sysctl max_map_count 4096 "--mappings=4030 --operations=$2" \
        fail_in "$1" --calls=mmap,munmap,mremap,mprotect,madvise --mappings=4096 --armed --report="$SCRATCH/report" -- || return
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
    with_sysctl overcommit_memory 2 "--operations=$2" run_as "$1" NVFLARE_CLIENT_MEMORY_PROFILE=0 prlimit --data=307200000
}

# With vm.overcommit_memory=2 the recycler unmaps a range before it maps it again, and loses it if that fails.
lost_ranges() { # MODE OPERATIONS
    local one_in
    for one_in in 3 20; do
        with_sysctl overcommit_memory 2 "--operations=$2" \
            fail_in "$1" --calls=mmap --one-in="$one_in" --seed="$RANDOM" --armed -- || return
    done
}

CALLS_UNDER_LIMIT=(small mid large small_calloc large_calloc small_realloc large_realloc memalign mmap mlock fork exec threads)
AT_LIMIT=$ROOT/tests/faults/at_limit.c
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
        [ "$status" -eq 0 ] || fail_with "$call: exit status $status" || failed=1
    done
    return "$failed"
}

no_memory() { # MODE
    run_as "$1" NVFLARE_CLIENT_MEMORY_PROFILE=1 "$SCRATCH/no_memory" >"$SCRATCH/out" 2>&1 ||
        fail_with "status $?" || return
    grep -q "r=99 no memory: " "$SCRATCH/out"
}

in_group() { # BADNESS COMMAND...
    echo "$1" >"/proc/$BASHPID/oom_score_adj"
    echo "$BASHPID" >"$GROUP/cgroup.procs"
    exec "${@:2}"
}

in_small_group() { # STATUS MODE [NAME=VALUE...] PROGRAM...: it must end with this status. Its stderr is in $SCRATCH/out.
    local status=0
    make_group 256 || return
    (in_group 0 env LD_PRELOAD="$LIB" FLARENA_ALLOCATOR="$2" TEST_MODE="$2" "${@:3}") >"$SCRATCH/out" 2>&1 || status=$?
    rmdir "$GROUP"
    [ "$status" -eq "$1" ] || fail_with "status $status"
}

refused_at_limit() { # MODE
    in_small_group 0 "$1" FLARENA_AT_LIMIT=fail TEST_LINE="$(line_of "$AT_LIMIT" 'cannot fit')" "$SCRATCH/at_limit"
}

refused_while_bare_is_killed() { # MODE MEGABYTES
    in_small_group $KILLED "$1" FLARENA_AT_LIMIT=off FILL_MB="$2" "$SCRATCH/at_limit" || return
    [ ! -s "$SCRATCH/out" ] || fail_with "a message" || return
    in_small_group $REFUSED "$1" FLARENA_AT_LIMIT=fail FILL_MB="$2" "$SCRATCH/at_limit"
}

spares_others() { # MODE: room for a 16th of what another process holds
    local status=0
    make_group 256 || return
    coproc HOLDER { in_group 0 python3 -c 'held = bytearray(b"x") * (128 << 20); print(flush=True); input()'; }
    read -r <&"${HOLDER[0]}"
    (in_group 0 env LD_PRELOAD="$LIB" FLARENA_ALLOCATOR="$1" TEST_MODE="$1" FLARENA_AT_LIMIT=fail FILL_MB=2 "$SCRATCH/at_limit") \
        >"$SCRATCH/out" 2>&1 || status=$?
    kill "$HOLDER_PID" && { wait "$HOLDER_PID" || true; }
    rmdir "$GROUP"
    { [ "$status" -eq $REFUSED ] && grep -E '^flarena: 2\.0 MB asked, ([89]|1[01])\.[0-9] MB left .* [789]\.[0-9] MB of them spared for the rest of the group' "$SCRATCH/out"; } ||
        fail_with "status $status"
}

unread_group() { # MODE
    in_small_group 0 "$1" FLARENA_GOVERNOR=off MALLOC_CONF=dirty_decay_ms:-1 \
        TEST_LINE="$(line_of "$AT_LIMIT" descriptor)" "$SCRATCH/at_limit"
}

last_words() { # MODE: a line, and a marker with the same sizes
    local file=$SCRATCH/last.jsonl
    rm -f "$file"
    in_small_group $KILLED "$1" NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_MARKER_FILE="$file" FILL_MB=24 \
        "$SCRATCH/at_limit" || return
    grep -E "^flarena: 24.0 MB asked, [0-9.]+ MB left .* FLARENA_AT_LIMIT=fail" "$SCRATCH/out" ||
        fail_with "the line is missing" || return
    python3 - "$file" <<'END'
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
    [[ $status -eq 0 && $kills -gt 0 ]] || fail_with "status $status, $kills neighbours killed" || return
    python3 "$ROOT/tests/faults/check_markers.py" "$file" 1
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
    open_to_others
    mkdir -p "$place"
    chmod 777 "$place"
    rm -f "$file"
    # setpriv and prlimit write no markers, because they run as root and would create the file.
    written=$(write_markers "$1" "$file" 50 LD_PRELOAD="$SCRATCH/libflarena.so" UNDER_LIMIT="$2" NVFLARE_CLIENT_MEMORY_PROFILE=0 \
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
