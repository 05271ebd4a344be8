#!/usr/bin/env bash
# The command flarena, as users and scripts see it. One part per subject.
cd "$(dirname "$0")" || exit 1
# shellcheck source=tests/lib.sh
. ../lib.sh

if ! need gcc || ! need python3 || ! need pgrep procps; then
    skip "the flarena command" "gcc, python3 and procps are needed"
    finish
    exit
fi
chmod 755 "$SCRATCH" # some tests run as another user
FLARENA=$ROOT/target/release/flarena
export FLARENA
# Another user cannot read a checkout in a home folder.
OPEN_FLARENA=$SCRATCH/flarena
install -m 755 "$FLARENA" "$OPEN_FLARENA"
as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups -- "$@"; } # COMMAND...: as the user with number 65534
check_as_nobody() { # SENTENCE COMMAND...: needs root
    if [ "$(id -u)" -eq 0 ]; then check "$@"; else skip "$1" "only root can become another user"; fi
}
system_jemalloc() { compgen -G "/usr/lib/*/libjemalloc.so.2" | head -n 1; }
jemalloc=$(system_jemalloc)
if [ -z "$jemalloc" ] && install_packages libjemalloc2; then jemalloc=$(system_jemalloc); fi

flarena() { without_preload -u PYTHONPATH FLARENA_LIB="$LIB" "$FLARENA" "$@"; }

exits_with() { # STATUS COMMAND...: prints the output only on failure
    local expected=$1 status=0
    shift
    "$@" >"$SCRATCH/exits_with" 2>&1 || status=$?
    [ "$status" -eq "$expected" ] || { cat "$SCRATCH/exits_with"; echo "exit status $status"; return 1; }
}

has_lines() { # EXPRESSION...: the output of the last command of exits_with has a line for each
    local expression
    cat "$SCRATCH/exits_with"
    for expression; do grep -q -- "$expression" "$SCRATCH/exits_with" || return; done
}

# Each error states the fault or the correct form, without the number of a system error.
refuses() { # TEXT STATUS ARGUMENT...
    exits_with "$2" "$FLARENA" "${@:3}"
    cat "$SCRATCH/exits_with"
    grep -qF -- "$1" "$SCRATCH/exits_with"
    ! grep "os error" "$SCRATCH/exits_with"
}

says() { # TEXT COMMAND...: stdout or stderr contains the text; the exit status is ignored
    local text=$1 output
    shift
    output=$("$@" 2>&1) || true
    [[ $output == *"$text"* ]] || { printf '%s\n' "$output"; return 1; }
}

compile() { # NAME [OPTION...]: compiles NAME.c into $SCRATCH
    local name=$1
    shift
    gcc -std=gnu11 -D_GNU_SOURCE -O1 -Wall -Wextra -Werror "$name.c" -o "$SCRATCH/$name" "$@"
}

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

for part in start doctor live compare input; do
    # shellcheck source=/dev/null
    . "./$part.sh"
done
if need tmux; then
    # shellcheck source=tests/cli/screen.sh
    . ./screen.sh
else
    skip "flarena top in a terminal" "tmux is missing"
fi
finish
