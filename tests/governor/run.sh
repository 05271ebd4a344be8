#!/usr/bin/env bash
# The governor: when it starts, which memory it releases, that it does not disturb the program, and its control channel.
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
cd "$ROOT/tests/governor" || exit 1

start_holder() { # MODE: sets PID to a process with a governor
    : >"$SCRATCH/pid"
    COMMAND_TIMEOUT='' run_as "$1" "$SCRATCH/control/holder" >"$SCRATCH/pid" 2>/dev/null &
    for _ in $(seq 600); do
        PID=$(head -n 1 "$SCRATCH/pid")
        [ -n "$PID" ] && return
        sleep 0.1
    done
    return 1
}

ask() { without_preload python3 control/client.py "$PID" "$1"; }

ask_as_other_user() {
    chmod 755 "$SCRATCH"
    cp control/client.py "$SCRATCH/client.py"
    setpriv --reuid=65534 --regid=65534 --clear-groups /usr/bin/python3 "$SCRATCH/client.py" "$PID" ping
}

reply_satisfies() { # ACTION CONDITION: a Python expression over the fields of the reply
    ask "$1" >"$SCRATCH/reply"
    cat "$SCRATCH/reply"
    python3 -c 'import json, sys; assert eval(sys.argv[1], json.load(sys.stdin))' "$2" <"$SCRATCH/reply"
}

check_control() { # MODE
    local mode=$1
    check "$mode: the control channel answers ping with the version" reply_satisfies ping 'version.count(".") == 2'
    check "$mode: the control channel returns the statistics of the process" \
        reply_satisfies stats "pid == $PID and governor['running'] and live_bytes > 100e6"
    check "$mode: the control channel trims, and returns the released bytes and the result" \
        reply_satisfies trim 'released_bytes >= 0 and result in (0, 1)'
    check "$mode: a trim through the control channel is counted as a reclaim" reply_satisfies stats "governor['reclaims'] >= 1"
    check "$mode: the reply to an unknown request lists the known ones" \
        reply_satisfies unknown 'all(word in error for word in ("stats", "trim", "ping"))'
    check_output "$mode: an endless request gets no reply" "" ask endless
    check_output "$mode: a client that sends its request after 3 s gets no reply" "" ask slow
    check "$mode: the control channel answers after an endless and a late request" reply_satisfies ping 'version'
    if [ "$(id -u)" -eq 0 ] && need setpriv util-linux && [ -x /usr/bin/python3 ]; then
        check_output "$mode: the control channel does not answer another user" "" ask_as_other_user
    else
        skip "$mode: the control channel does not answer another user" "needs root, setpriv and /usr/bin/python3"
    fi
}

# The library stands between the program and libc, as that of a profiler does.
compile_profiled() {
    mkdir -p "$SCRATCH/preload"
    gcc "${C_FLAGS[@]}" -shared -fPIC preload/profiler.c -o "$SCRATCH/preload/libprofiler.so" -ldl &&
        compile preload/profiled.c "$SCRATCH/preload/profiled" "$SCRATCH/preload/libprofiler.so" "-Wl,-rpath,$SCRATCH/preload"
}

# With the clock of a machine that has been up for a month.
after_a_month() { # MODE COMMAND...
    local clock=(unshare --time --monotonic 2592000 --boottime 2592000 --fork)
    "${clock[@]}" true 2>/dev/null || { echo "this process may not create a time namespace"; return 77; }
    run_as "$1" FLARENA_GOVERNOR=off "${clock[@]}" "${@:2}"
}

limit_off() { # MODE CASE NAME=VALUE...
    run_program "$1" "$SCRATCH/limit_off/limit_off" FLARENA_GOVERNOR=off "${@:3}" -- "$2"
}

# Old kernels and strict seccomp filters lack close_range, or both ways to get an own descriptor table.
check_without_close_range() { # MODE
    local program
    for program in descriptor_table silent_client lowest_descriptor_at_start; do
        check "$1, without close_range: $(sentence_of "$program.c")" \
            run_program "$1" "$SCRATCH/without_close_range/launcher" -- close_range "$SCRATCH/$program"
    done
    for program in closed_descriptors without_close_range/no_channel; do
        check "$1, without close_range and unshare: $(sentence_of "$program.c")" \
            run_program "$1" "$SCRATCH/without_close_range/launcher" -- unshare "$SCRATCH/$program"
    done
}

check_programs .
for directory in limit control limit_off off without_close_range; do compile_all "$directory"; done
check "the profiler's library compiles" compile_profiled
for mode in "${MODES[@]}"; do
    for source in limit/*.c; do
        check "$mode: $(sentence_of "$source")" run_program "$mode" "$SCRATCH/${source%.c}" FLARENA_MEMORY_LIMIT=64M
    done
    while read -r case sentence; do
        check "$mode: without a governor, $sentence" \
            limit_off "$mode" "$case" FLARENA_MEMORY_LIMIT=256M MALLOC_CONF=dirty_decay_ms:-1
    done <<'CASES'
crossing free memory is released at the allocation that would cross FLARENA_MEMORY_LIMIT
one_large_block free memory is released for one block that is larger than the room below FLARENA_MEMORY_LIMIT
after_measurement a large block right after another one is compared with FLARENA_MEMORY_LIMIT, too
failed_measurement FLARENA_MEMORY_LIMIT holds also after the program had no descriptor for a measurement
grown_in_place free memory is released for a block that xallocx grows across FLARENA_MEMORY_LIMIT
small_reallocs small reallocs near FLARENA_MEMORY_LIMIT release nothing
CASES
    check "$mode: without a governor, small reallocs near FLARENA_MEMORY_LIMIT release nothing with FLARENA_SITES=on, too" \
        limit_off "$mode" small_reallocs FLARENA_MEMORY_LIMIT=256M FLARENA_SITES=on
    check "$mode: a heap whose blocks all have one size starts the governor, and its free memory is released when the program is idle" \
        run_program "$mode" "$SCRATCH/small_blocks" -- 170 # glibc's blocks of this size begin at addresses of one remainder
    for source in off/*.c; do
        check "$mode: $(sentence_of "$source")" run_program "$mode" "$SCRATCH/${source%.c}" FLARENA_GOVERNOR=off
    done
    check "$mode: with FLARENA_GOVERNOR=off calls purge old pages on a machine that has been up for a month" after_a_month "$mode" "$SCRATCH/off/purge_in_calls"
    check "$mode: $(sentence_of preload/profiled.c)" run_program "$mode" "$SCRATCH/preload/profiled"
    check_without_close_range "$mode"
    if start_holder "$mode"; then
        check_control "$mode"
    else
        fail "$mode: a process with a governor gets ready" "$(cat "$SCRATCH/pid")"
    fi
    kill "$PID" 2>/dev/null
    wait
done
check "jemalloc: the governor starts with percpu_arena:percpu" \
    run_program jemalloc "$SCRATCH/small_blocks" MALLOC_CONF=percpu_arena:percpu
finish
