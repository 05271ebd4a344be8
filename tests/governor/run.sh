#!/usr/bin/env bash
# The governor: when it starts, which memory it releases, that it does not disturb the program, and its control channel.
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
cd "$ROOT/tests/governor" || exit 1

start_holder() { # MODE: sets PID to a process with a governor
    PID=
    : >"$SCRATCH/pid"
    COMMAND_TIMEOUT='' run_as "$1" "$SCRATCH/control/holder" >"$SCRATCH/pid" 2>/dev/null &
    eventually test -s "$SCRATCH/pid" && PID=$(head -n 1 "$SCRATCH/pid")
}

ask() { without_preload python3 control/client.py "$PID" "$1"; }

reply_satisfies() { # ACTION CONDITION: a Python expression over the fields of the reply
    ask "$1" >"$SCRATCH/reply"
    cat "$SCRATCH/reply"
    python3 -c 'import json, sys; assert eval(sys.argv[1], json.load(sys.stdin))' "$2" <"$SCRATCH/reply"
}

check_control() { # MODE
    local mode=$1
    check "$mode: the control channel answers ping with the version" reply_satisfies ping 'version.count(".") == 2'
    check "$mode: a trim through the control channel is counted as a reclaim" eval \
        "ask trim && reply_satisfies stats \"governor['reclaims'] >= 1\""
    check "$mode: the reply to an unknown request lists the known ones" \
        reply_satisfies unknown 'all(word in error for word in ("stats", "trim", "ping"))'
    check_output "$mode: an endless request gets no reply" "" ask endless
    check_output "$mode: a client that sends its request after 3 s gets no reply" "" ask slow
    check "$mode: the control channel answers after an endless and a late request" reply_satisfies ping 'version'
}

# With the clock of a machine that has been up for a month.
after_a_month() { # MODE
    local clock=(unshare --time --monotonic 2592000 --boottime 2592000 --fork)
    "${clock[@]}" true 2>/dev/null || { echo "this process may not create a time namespace"; return 77; }
    run_as "$1" TEST_LINE="$(line_of off.c 'when they are old')" "${clock[@]}" "$SCRATCH/off"
}

# Old kernels and strict seccomp filters lack close_range, or both ways to get an own descriptor table.
check_without_close_range() { # MODE
    local missing words line sentence
    while read -r missing words; do
        read -r line sentence < <(tests_of descriptors.c | grep "$words")
        check "$1, without $missing: $sentence" \
            run_program "$1" "$SCRATCH/without_close_range/launcher" TEST_LINE="$line" -- "$missing" "$SCRATCH/descriptors"
    done <<'END'
close_range own descriptor table
close_range clients that send nothing
close_range while the governor starts
unshare closes all descriptors
END
    check "$1, without close_range and unshare: $(sentence_of without_close_range/no_channel.c)" \
        run_program "$1" "$SCRATCH/without_close_range/launcher" -- unshare "$SCRATCH/without_close_range/no_channel"
}

# -rdynamic: profiler.c stands between the library and libc.
check_programs . -rdynamic
for directory in control without_close_range; do compile_all "$directory"; done
for mode in "${MODES[@]}"; do
    check "$mode: without a governor calls purge old pages on a machine that has been up for a month" \
        after_a_month "$mode"
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
    run_program jemalloc "$SCRATCH/small" TEST_LINE="$(line_of small.c 'small blocks')" MALLOC_CONF=percpu_arena:percpu
finish
