# shellcheck shell=bash
# Starts and ends waiting processes. Sourced by the parts of run.sh.

start() { # COMMAND...: runs it until `stop` or the end of the check, waits until it prints ready, and sets PID
    rm -f "$SCRATCH/input"
    mkfifo "$SCRATCH/input"
    : >"$SCRATCH/said" # the last process was ready, too
    "$@" <"$SCRATCH/input" >"$SCRATCH/said" 2>&1 &
    STARTED=$!
    exec 7>"$SCRATCH/input"
    trap 'stop || true' EXIT
    for _ in $(seq 600); do
        if grep -q ready "$SCRATCH/said"; then
            # shellcheck disable=SC2034
            PID=$(deepest "$STARTED")
            return
        fi
        kill -0 "$STARTED" 2>/dev/null || break
        sleep 0.1
    done
    cat "$SCRATCH/said"
    return 1
}

deepest() { # PID: prints the last process of a chain of children
    local child
    child=$(pgrep -P "$1" | head -n 1)
    if [ -n "$child" ]; then deepest "$child"; else echo "$1"; fi
}

stop() { # ends the process of `start`
    exec 7>&-
    wait "$STARTED"
}
