#!/usr/bin/env bash
# The governor: when it starts, what it gives back, what it must not disturb, who it answers.
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
cd "$ROOT/tests/governor" || exit 1

COMMAND_TIMEOUT=60

start_waiting() { # MODE: sets PID to a process that the governor serves
    : >"$SCRATCH/pid"
    COMMAND_TIMEOUT='' run_as "$1" "$SCRATCH/control/waits" >"$SCRATCH/pid" 2>/dev/null &
    for _ in $(seq 200); do
        PID=$(head -n 1 "$SCRATCH/pid")
        [ -n "$PID" ] && return
        sleep 0.1
    done
    return 1
}

ask() { without_preload python3 control/client.py "$PID" "$1"; }

ask_as_nobody() {
    chmod 755 "$SCRATCH"
    cp control/client.py "$SCRATCH/client.py"
    setpriv --reuid=65534 --regid=65534 --clear-groups /usr/bin/python3 "$SCRATCH/client.py" "$PID" ping
}

answers_so_that() { # ACTION CONDITION: of the reply's fields, in Python
    ask "$1" >"$SCRATCH/reply"
    cat "$SCRATCH/reply"
    python3 -c 'import json, sys; assert eval(sys.argv[1], json.load(sys.stdin))' "$2" <"$SCRATCH/reply"
}

check_control() { # MODE
    local mode=$1
    check "$mode: the control channel answers ping with the version" answers_so_that ping 'version.count(".") == 2'
    check "$mode: the control channel gives the statistics of that process" \
        answers_so_that stats "pid == $PID and governor['running'] and live_bytes > 100e6"
    check "$mode: the control channel trims, and says how much went back and what trim answered" \
        answers_so_that trim 'released_bytes >= 0 and result in (0, 1)'
    check "$mode: the trim is counted" answers_so_that stats "governor['reclaims'] >= 1"
    check "$mode: an unknown request is answered with the known ones" \
        answers_so_that unknown 'all(word in error for word in ("stats", "trim", "ping"))'
    check_output "$mode: an endless request is cut off" "" ask endless
    check_output "$mode: a client that says nothing is not waited for" "" ask slow
    check "$mode: after all that the channel still answers" answers_so_that ping 'version'
    if [ "$(id -u)" -eq 0 ] && need setpriv util-linux && [ -x /usr/bin/python3 ]; then
        check_output "$mode: another user is not answered" "" ask_as_nobody
    else
        skip "$mode: another user is not answered" "not root, or no python3 of the system's"
    fi
}

# Another tool's library between the program and libc.
compile_over() { # LIBRARY PROGRAM
    mkdir -p "$SCRATCH/preload"
    gcc "${C_FLAGS[@]}" -shared -fPIC "preload/$1.c" -o "$SCRATCH/preload/lib$1.so" -ldl &&
        compile "preload/$2.c" "$SCRATCH/preload/$2" "$SCRATCH/preload/lib$1.so" "-Wl,-rpath,$SCRATCH/preload"
}

# The clock of a machine that has been up for a month.
after_a_month() { # MODE COMMAND...
    local clock=(unshare --time --monotonic 2592000 --boottime 2592000 --fork)
    "${clock[@]}" true 2>/dev/null || { echo "no clock of one's own can be had here"; return 77; }
    run_as "$1" FLARENA_GOVERNOR=off "${clock[@]}" "${@:2}"
}

# Where the system allows no table of descriptors of one's own, or only the old way to it.
check_refused() { # MODE
    local program
    for program in own_table silent_client lowest_number_at_start; do
        check "$1, without close_range: $(sentence_of "$program.c")" \
            run_program "$1" "$SCRATCH/refused/without" -- close_range "$SCRATCH/$program"
    done
    for program in silent_client closed_descriptors; do
        check "$1, without close_range and unshare: $(sentence_of "$program.c")" \
            run_program "$1" "$SCRATCH/refused/without" -- unshare "$SCRATCH/$program"
    done
}

check_programs .
compile_all limit
compile_all control
compile_all off
compile_all refused
check "the profiler's library compiles" compile_over wrapper wrapped
check "the tracer's library compiles" compile_over allocating traced
for mode in "${MODES[@]}"; do
    for source in limit/*.c; do
        check "$mode: $(sentence_of "$source")" run_program "$mode" "$SCRATCH/${source%.c}" FLARENA_MEMORY_LIMIT=64M
    done
    for source in off/*.c; do
        check "$mode: $(sentence_of "$source")" run_program "$mode" "$SCRATCH/${source%.c}" FLARENA_GOVERNOR=off
    done
    check "$mode: calls give back what is old also on a machine that has been up for a month" after_a_month "$mode" "$SCRATCH/off/gives_back"
    for program in wrapped traced; do
        check "$mode: $(sentence_of "preload/$program.c")" run_program "$mode" "$SCRATCH/preload/$program"
    done
    check_refused "$mode"
    if start_waiting "$mode"; then
        check_control "$mode"
    else
        fail "$mode: a process with a governor gets ready" "$(cat "$SCRATCH/pid")"
    fi
    kill "$PID" 2>/dev/null
    wait
done
check "jemalloc: a governor also starts with an arena for each CPU" \
    run_program jemalloc "$SCRATCH/small_blocks" MALLOC_CONF=percpu_arena:percpu
finish
