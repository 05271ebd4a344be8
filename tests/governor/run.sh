#!/usr/bin/env bash
# The governor: when it starts, what it gives back, what it must not disturb, who it answers.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
cd "$ROOT/tests/governor" || exit 1

compile() { # NAME
    gcc -std=gnu11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror -fno-builtin -pthread "$1.c" -o "$SCRATCH/$1" -ldl
}

program() { # MODE NAME [NAME=VALUE...]: runs it, silent and successful
    local mode=$1 name=$2
    shift 2
    in_mode "$mode" TEST_MODE="$mode" "$@" timeout 60 "$SCRATCH/$name" 2>"$SCRATCH/stderr" || {
        local status=$?
        cat "$SCRATCH/stderr"
        return $status
    }
    [ ! -s "$SCRATCH/stderr" ] || { cat "$SCRATCH/stderr"; return 99; }
}

sentence_of() { sed -n '1s,^// ,,p' "$1.c"; }

start_waiting() { # MODE: sets PID to a process that the governor serves
    in_mode "$1" TEST_MODE="$1" "$SCRATCH/waits" >"$SCRATCH/pid" 2>/dev/null &
    for _ in $(seq 200); do
        PID=$(head -n 1 "$SCRATCH/pid")
        [ -n "$PID" ] && return
        sleep 0.1
    done
    return 1
}

ask() { without_preload python3 control_client.py "$PID" "$1"; }

ask_as_nobody() {
    chmod 755 "$SCRATCH"
    cp control_client.py "$SCRATCH/client.py"
    setpriv --reuid=65534 --regid=65534 --clear-groups /usr/bin/python3 "$SCRATCH/client.py" "$PID" ping
}

answers_json_with() { # ACTION KEY
    ask "$1" | python3 -c 'import json, sys; assert sys.argv[1] in json.load(sys.stdin)' "$2"
}

need gcc || { skip "the governor" "no gcc"; finish; exit; }
for name in small_process small_blocks after_fork signals closed_descriptors soft_limit limit_below_live waits; do
    compile "$name" || fail "$name.c compiles"
done

for mode in glibc jemalloc; do
    for name in small_process small_blocks after_fork signals closed_descriptors; do
        check "$mode: $(sentence_of $name)" program "$mode" "$name"
    done
    for name in soft_limit limit_below_live; do
        check "$mode: $(sentence_of $name)" program "$mode" "$name" FLARENA_MEMORY_LIMIT=64M
    done
    if start_waiting "$mode"; then
        check "$mode: the control channel answers ping" answers_json_with ping version
        check "$mode: the control channel gives the statistics" answers_json_with stats live_bytes
        check "$mode: the control channel trims and says how much" answers_json_with trim released_bytes
        check "$mode: an unknown request is answered with the known ones" answers_json_with unknown error
        check_output "$mode: an endless request is cut off" "" ask endless
        check_output "$mode: a client that says nothing is not waited for" "" ask slow
        check "$mode: after all that the channel still answers" answers_json_with ping version
        if [ "$(id -u)" -eq 0 ] && need setpriv util-linux && [ -x /usr/bin/python3 ]; then
            check_output "$mode: another user is not answered" "" ask_as_nobody
        else
            skip "$mode: another user is not answered" "not root, or no python3 of the system's"
        fi
    else
        fail "$mode: a process with a governor gets ready" "$(cat "$SCRATCH/pid")"
    fi
    kill "$PID" 2>/dev/null
    wait
done
check "jemalloc: a governor also starts with an arena for each CPU" \
    program jemalloc small_blocks MALLOC_CONF=percpu_arena:percpu
finish
