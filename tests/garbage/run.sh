#!/usr/bin/env bash
# Full collections by bytes: when they are due, where they may run, and which programs must not be collected.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

HERE=$ROOT/tests/garbage
PACKAGE=$ROOT/src/python
export COMMAND_TIMEOUT=240 PYTHONDONTWRITEBYTECODE=1

rounds() { # MODE CASE [NAME=VALUE...]
    local mode=$1 case=$2
    shift 2
    in_mode "$mode" PYTHONPATH="$PACKAGE:$ROOT/tests/python" "$@" "$PYTHON" "$HERE/rounds.py" "$case"
}
in_stages() { # CASE MODE [NAME=VALUE...]: with the hooks of NVFlare, without markers
    local case=$1 mode=$2
    shift 2
    in_mode "$mode" PYTHONPATH="$PACKAGE/flarena/hooks:$ROOT/tests/python/fake:$ROOT/tests/python:$HERE:$PACKAGE" "$@" "$PYTHON" "$HERE/stages.py" "$case"
}
markers() { # MODE
    rm -f "$SCRATCH/markers"
    # The governor's collections would come between two markers.
    in_mode "$1" PYTHONPATH="$PACKAGE" NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_MARKER_FILE="$SCRATCH/markers" FLARENA_GOVERNOR=off \
        "$PYTHON" "$HERE/released_in_markers.py" "$SCRATCH/markers"
}
forked() { in_mode "$1" PYTHONPATH="$PACKAGE" "$PYTHON" "$HERE/forked.py" "$2" "$COMMAND"; } # MODE CASE
plain() { # MODE CASE [NAME=VALUE...]: a program without the package
    local mode=$1 case=$2
    shift 2
    in_mode "$mode" "$@" "$PYTHON" "$HERE/plain.py" "$case" "$COMMAND" 2>&1
}

by_ctrl_c() { # MODE: the exit status, which is 130 if SIGINT ends the program
    local status=0
    plain "$1" trim_after_ctrl_c || status=$?
    echo "$status"
}

COMMAND=$ROOT/target/release/flarena
while read -r version PYTHON; do
    name="Python $version"
    for mode in glibc jemalloc; do
        check_output "$name, $mode: cycles that hold large blocks are collected at markers" flat rounds $mode at_markers
        check_output "$name, $mode: cycles that hold large blocks are collected at trims" flat rounds $mode at_trims
        check_output "$name, $mode: garbage of young objects is collected at markers without a full collection" "flat young" rounds $mode young
        check_output "$name, $mode: collections continue if they wait long" flat rounds $mode waiting_in_collections
        check_output "$name, $mode: a trim before a wait collects without growth, a marker does not" "0 0" rounds $mode before_wait FLARENA_GOVERNOR=off
        check_output "$name, $mode: with FLARENA_GC=off markers collect nothing" grows rounds $mode at_markers FLARENA_GC=Off
        check_output "$name, $mode: the stages of NVFlare collect cycles without markers" flat in_stages server $mode
        check_output "$name, $mode: NVFlare's server collects the old model at the next round, nothing in the aggregation" "60 60 0" \
            in_stages aggregation $mode FLARENA_GOVERNOR=off
        check_output "$name, $mode: the stages after which NVFlare waits return the cache at once" "0 0 0" in_stages waits $mode
        check_output "$name, $mode: a decay time above the default keeps the cache at these stages" "60 60 60" in_stages waits $mode FLARENA_DECAY_MS=60000
        check_output "$name, $mode: markers in a forked child collect cycles" flat rounds $mode forked
        check_output "$name, $mode: a marker in a forked worker collects nothing while the worker shares much memory" 0 forked $mode markers
        check_output "$name, $mode: a marker in a parent collects nothing while its worker shares much memory, and collects after that" \
            "0 1" forked $mode parent
        check_output "$name, $mode: the governor does not collect an idle worker that shares much memory" 0 forked $mode idle
        check_output "$name, $mode: flarena trim does not collect a worker that shares much memory, and says why" \
            "Python's collector did not run (memory shared with parent or children would become private) 0" forked $mode trim
        check_output "$name, $mode: markers in several threads collect cycles" flat rounds $mode busy_threads
        check_output "$name, $mode: after gc.disable() markers collect nothing" grows rounds $mode disabled
        check_output "$name, $mode: objects that gc.freeze() froze stay" "True flat True" rounds $mode frozen
        check_output "$name, $mode: a program that clears gc.callbacks is collected as often as before" "flat 20 20" rounds $mode callbacks_cleared
        check_output "$name, $mode: a program that clears gc.callbacks in a collection is still collected" flat rounds $mode callbacks_cleared_within
        check_output "$name, $mode: a marker in a signal handler collects nothing, the next one does" \
            $'function 0 1\nHandler 0 1\nmethod 0 1\npartial 0 1\nfunction 0 1' rounds $mode handlers FLARENA_GOVERNOR=off
        check_output "$name, $mode: a marker reads no attribute of a signal handler" "0 1 []" rounds $mode handlers_without_reads FLARENA_GOVERNOR=off
        check_output "$name, $mode: a marker in a finalizer starts no second collection" "1 flat" rounds $mode finalizers
        check_output "$name, $mode: observing a collection runs no Python code" "1 []" rounds $mode no_python_code
        check_output "$name, $mode: after the main thread has ended markers collect nothing" 0 rounds $mode ending
        check_output "$name, $mode: markers in a subinterpreter collect nothing" "collector None and 0 collections" rounds $mode subinterpreter
        check "$name, $mode: markers and statistics report the bytes that collections released" markers $mode
        check_output "$name, $mode: the governor collects the garbage of an idle program" collected plain $mode idle
        check_output "$name, $mode: with FLARENA_GC=off the governor does not collect an idle program" "not collected" plain $mode idle_and_off FLARENA_GC=off
        check_output "$name, $mode: after gc.disable() the governor does not collect an idle program" "not collected" plain $mode idle_and_off
        check_output "$name, $mode: the governor collects the young objects of a busy program" "flat young" plain $mode busy
        check_output "$name, $mode: the governor collects the old objects of a busy program without stages" flat plain $mode busy_old
        check_output "$name, $mode: the governor collects a busy program near its limit" "not far beyond it" \
            plain $mode near_limit FLARENA_MEMORY_LIMIT=400M
        check_output "$name, $mode: flarena trim collects first, and reports the released garbage" \
            "60.0 MB of it cyclic garbage 0" plain $mode trim
        check_output "$name, $mode: flarena trim during a signal handler collects nothing, and says why" \
            "Python's collector did not run (disabled, in a signal handler, or Python is ending) 60" plain $mode trim_in_handler
        check_output "$name, $mode: flarena trim runs no function that the program has put in the place of the interpreter's" \
            "60.0 MB of it cyclic garbage 0 []" plain $mode trim_without_own_code
        check_output "$name, $mode: Ctrl-C ends a program by SIGINT that is trimmed while its atexit functions run" 130 by_ctrl_c $mode
    done
done < <(python_versions python3 /usr/bin/python3 | sort -u -k 1,1)
read -r _ PYTHON < <(python_versions python3)
for mode in glibc jemalloc; do
    check_output "$mode: the governor collects a program with stages at rest, once, and without growth" "collected 1" rounds $mode at_rest
    check_output "$mode: flarena trim while the main thread waits in C code collects nothing, and says why" \
        "Python's collector did not run (the main thread did not respond in 5 s)" plain $mode trim_in_c
done
finish
