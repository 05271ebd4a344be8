# shellcheck shell=bash
# Time limits that show where a command hangs. At the limit the stacks of its processes and the ends of its logs
# are written to a report, build/hangs/NAME.txt; then its processes end.
#
# Each command has its own folder. A process belongs to the command when its command line or its environment contains
# the path of that folder. Sourced by tests/lib.sh and scripts/test.sh, which set ROOT.

STATUS_AT_LIMIT=124
LOG_LINES_IN_REPORT=20
SECONDS_UNTIL_KILL=10

processes_of() { # TEXT: the processes whose command line or environment contains it
    local directory
    for directory in /proc/[0-9]*; do
        if grep -qsaF -- "$1" "$directory/cmdline" "$directory/environ"; then echo "${directory#/proc/}"; fi
    done
}

kill_processes_of() { # TEXT [SIGNAL]
    local process
    for process in $(processes_of "$1"); do
        kill "-${2:-KILL}" "$process" 2>/dev/null || true
    done
}

hang_report() { # NAME: the path of its report
    echo "$ROOT/build/hangs/${1//[!a-zA-Z0-9._-]/-}.txt"
}

show_hang() { # NAME: prints its report
    sed 's/^/    /' "$(hang_report "$1")"
}

install_stack_tools() { # sets PY_SPY; the report has less where one of the tools cannot be installed
    PY_SPY=$(timeout 300 "$ROOT/scripts/venv.sh" py-spy py-spy 2>/dev/null)/bin/py-spy
    # shellcheck disable=SC2016  # the inner shell expands it
    command -v gdb >/dev/null ||
        FLARENA_TEST_LIB=/dev/null timeout 300 bash -c '. "$1/tests/lib.sh"; install_packages gdb' _ "$ROOT"
}

# The stacks of a shell that waits for a child say nothing: the process tree shows the child.
print_stacks() { # PROCESS
    [ "$(cat "/proc/$1/wchan")" != do_wait ] || return 0
    printf '\n== stacks of process %d: %s\n' "$1" "$(tr '\0' ' ' <"/proc/$1/cmdline" | cut -c 1-160)"
    if [[ $(readlink "/proc/$1/exe") == *python* ]]; then timeout 30 "$PY_SPY" dump --pid "$1" 2>&1; fi
    timeout 60 gdb -batch -nx -ex 'set print frame-arguments presence' -ex 'set print address off' \
        -ex 'set filename-display basename' -p "$1" -ex 'thread apply all backtrace 15' 2>/dev/null </dev/null |
        grep -E '^(Thread|#)' | cut -c 1-160
}

logs_of() { # FOLDER: the paths of its logs, below it
    (cd "$1" && find . -type f -size +0 \( -name '*log*' -o -name '*.txt' -o -name '*.out' -o -name '*.err' \) ! -name '*.json*') |
        cut -c 3- | sort
}

print_logs() { # FOLDER
    local log
    logs_of "$1" | while IFS= read -r log; do
        printf '\n== the last errors in %s\n' "$log"
        grep -aE 'ERROR|Error|Fatal|Segmentation fault|Aborted|internal error' "$1/$log" | tail -n 3 | tr -d '\0' | cut -c 1-240
        printf '\n== the end of %s\n' "$log"
        tail -n "$LOG_LINES_IN_REPORT" "$1/$log" | tr -d '\0' | cut -c 1-240
    done
}

keep_logs() { # NAME FOLDER: of a command that failed
    local kept=$ROOT/build/failed/$1
    rm -rf "$kept"
    mkdir -p "$kept"
    logs_of "$2" | (cd "$2" && xargs -d '\n' cp --parents -t "$kept")
    echo "its logs are in $kept"
}

report_hang() { # NAME SECONDS FOLDER PROCESS...: writes the report
    local name=$1 seconds=$2 folder=$3 report process
    report=$(hang_report "$name")
    shift 3
    mkdir -p "${report%/*}"
    {
        printf '%s did not end within %d s. The report is %s\n' "$name" "$seconds" "$report"
        [ $# -eq 0 ] || ps -ww -o pid,ppid,stat,etimes,wchan:20,args --forest -p "$(tr ' ' , <<<"$*")" | cut -c 1-200
        install_stack_tools >/dev/null 2>&1
        for process; do
            [ ! -d "/proc/$process" ] || print_stacks "$process"
        done
        print_logs "$folder"
    } >"$report.part" 2>&1
    mv "$report.part" "$report"
}

end_at_limit() { # NAME SECONDS FOLDER: run beside the command
    local timer='' signal=TERM waited
    set +e
    trap 'kill $timer 2>/dev/null; exit' TERM
    sleep "$2" >/dev/null 2>&1 &
    timer=$!
    wait "$timer"
    timer=
    # shellcheck disable=SC2046  # one word for each process
    report_hang "$1" "$2" "$3" $(processes_of "$3")
    # A script goes on after one of its programs was killed, and starts the next one.
    for ((waited = 0; waited < 3 * SECONDS_UNTIL_KILL; waited++)); do
        [ "$waited" -lt "$SECONDS_UNTIL_KILL" ] || signal=KILL
        kill_processes_of "$3" $signal
        sleep 1 >/dev/null 2>&1
    done
}

# The command stays in the foreground: bash makes background commands ignore SIGINT.
run_limited() { # NAME SECONDS FOLDER COMMAND...: its exit status, or STATUS_AT_LIMIT and a report
    local status=0 watcher report
    report=$(hang_report "$1")
    rm -f "$report" "$report.part"
    end_at_limit "$1" "$2" "$3" &
    watcher=$!
    "${@:4}" || status=$?
    if [ -e "$report.part" ] || [ -e "$report" ]; then
        while [ ! -e "$report" ] && kill -0 "$watcher" 2>/dev/null; do sleep 0.5; done
        kill_processes_of "$3"
        status=$STATUS_AT_LIMIT
    fi
    kill "$watcher" 2>/dev/null || true
    wait "$watcher" 2>/dev/null || true
    return "$status"
}
