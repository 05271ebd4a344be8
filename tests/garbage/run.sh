#!/usr/bin/env bash
# Garbage collection that counts bytes: when it is due, where it may run, and what it leaves alone.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

HERE=$ROOT/tests/garbage
PACKAGE=$ROOT/src/python
export COMMAND_TIMEOUT=120 PYTHONDONTWRITEBYTECODE=1

# Each Python of the machine that differs: Debian's own, and the first of the PATH.
pythons() {
    local python
    for python in python3 /usr/bin/python3; do
        command -v "$python" >/dev/null && "$python" -c 'import sys; print(sys.executable)'
    done | sort -u
}

policy() { PYTHONPATH=$PACKAGE without_preload "$PYTHON" "$HERE/policy.py"; }
rounds() { # MODE CASE [NAME=VALUE...]
    local mode=$1 case=$2
    shift 2
    in_mode "$mode" PYTHONPATH="$PACKAGE" "$@" "$PYTHON" "$HERE/rounds.py" "$case"
}
in_stages() { # MODE [NAME=VALUE...]: NVFlare's hooks alone, without markers
    local mode=$1
    shift
    in_mode "$mode" PYTHONPATH="$PACKAGE/flarena/hooks:$ROOT/tests/python/fake:$HERE:$PACKAGE" "$@" "$PYTHON" "$HERE/stages.py"
}
markers() { # MODE: what released how much is told once, by the next marker
    rm -f "$SCRATCH/markers"
    in_mode "$1" PYTHONPATH="$PACKAGE" NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_MARKER_FILE="$SCRATCH/markers" \
        "$PYTHON" "$HERE/tells.py" "$SCRATCH/markers"
}
subinterpreter() { in_mode "$1" PYTHONPATH="$PACKAGE" "$PYTHON" "$HERE/subinterpreter.py"; }
plain() { # MODE CASE [NAME=VALUE...]: a program that knows nothing of us
    local mode=$1 case=$2
    shift 2
    in_mode "$mode" "$@" "$PYTHON" "$HERE/plain.py" "$case" "$COMMAND" 2>&1
}

COMMAND=$ROOT/target/release/flarena
for PYTHON in $(pythons); do
    name=$("$PYTHON" -c 'import sys; print("%s Python %d.%d" % (("the", "Debian")[sys.executable.startswith("/usr/bin")], *sys.version_info[:2]))')
    check "$name: the policy collects what is worth it, and backs off" policy
    for mode in glibc jemalloc; do
        check_output "$name, $mode: cycles that hold large blocks are collected at marks" flat rounds $mode marks
        check_output "$name, $mode: and at trims" flat rounds $mode trims
        check_output "$name, $mode: also where a busy machine makes them wait" flat rounds $mode waits
        check_output "$name, $mode: not when FLARENA_GC=off" grows rounds $mode marks FLARENA_GC=off
        check_output "$name, $mode: in the stages of NVFlare, without markers" flat in_stages $mode
        check_output "$name, $mode: not in the stages when FLARENA_GC=off" grows in_stages $mode FLARENA_GC=Off
        check_output "$name, $mode: in a forked child" flat rounds $mode forked
        check_output "$name, $mode: in many threads" flat rounds $mode busy_threads
        check_output "$name, $mode: a program without cycles is collected a few times, then left alone" seldom rounds $mode no_cycles
        check_output "$name, $mode: gc.disable() is respected" grows rounds $mode disabled
        check_output "$name, $mode: what gc.freeze() froze stays" "True flat True" rounds $mode frozen
        check_output "$name, $mode: a program that empties gc.callbacks is collected, no more often than before" "flat True" rounds $mode callbacks_cleared
        check_output "$name, $mode: so is one that empties it in the middle of a collection" flat rounds $mode callbacks_cleared_within
        check_output "$name, $mode: each collection of the program's counts, not the last one alone" 1 rounds $mode all_count
        check_output "$name, $mode: a program that collects by itself is not collected twice" 20 rounds $mode others_count
        check_output "$name, $mode: no collection inside a signal handler, one after it" \
            $'function 0 1\nHandler 0 1\nmethod 0 1\npartial 0 1\nfunction 0 1' rounds $mode handlers
        check_output "$name, $mode: no collection inside a collection" "1 flat" rounds $mode finalizers
        check_output "$name, $mode: what watches a collection runs no instruction of Python's" "1 []" rounds $mode silent
        check_output "$name, $mode: no collection once the main thread has ended" 0 rounds $mode ending
        check_output "$name, $mode: no collection in a subinterpreter" "collector None and 0 collections" subinterpreter $mode
        check "$name, $mode: markers and statistics tell what collections released" markers $mode
        check_output "$name, $mode: an idle program that holds garbage is asked to collect it" collected plain $mode idle
        check_output "$name, $mode: not when FLARENA_GC=off" "left alone" plain $mode idle_and_off FLARENA_GC=off
        check_output "$name, $mode: not when the program has turned collections off" "left alone" plain $mode idle_and_off
        check_output "$name, $mode: an idle program that holds no garbage is asked once" "1 10" plain $mode live
        check_output "$name, $mode: a busy program near its limit is asked to collect" "below the limit" \
            plain $mode near_limit FLARENA_MEMORY_LIMIT=400M
        check_output "$name, $mode: a trim from outside collects first, and says so" \
            "60.0 MB of it cyclic garbage 0" plain $mode trim
        check_output "$name, $mode: but not inside a signal handler" "Python collected no garbage 60" plain $mode trim_in_handler
    done
done
finish
