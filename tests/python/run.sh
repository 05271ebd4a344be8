#!/usr/bin/env bash
# The Python package: its API with and without the library, and the hooks, which must not change the program.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

HERE=$ROOT/tests/python
COMMAND=${FLARENA_TEST_COMMAND:-$ROOT/target/release/flarena}
PACKAGE=$ROOT/src/python
HOOKS=$PACKAGE/flarena/hooks
CANARY=canary-5eCr3t-token
export PYTHONDONTWRITEBYTECODE=1 # leave no files in the tree

with_markers() { # MODE COMMAND...: with markers on, written to a new file
    local mode=$1
    shift
    rm -f "$SCRATCH/markers"
    in_mode "$mode" NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_MARKER_FILE="$SCRATCH/markers" "$@"
}

# PYTHONPATH begins with the hooks, as `flarena run` sets it. The fake of NVFlare and the module markers follow.
hooked() { # MODE [NAME=VALUE...] COMMAND...
    local mode=$1
    shift
    with_markers "$mode" PYTHONPATH="$HOOKS:$HERE/fake:$HERE" "$@"
}

count_stage() { # STAGE: prints the number of its markers
    grep -c "\"stage\":\"$1\"" "$SCRATCH/markers"
}

stages_and_metrics() { # MODE
    with_package "$1" stages_and_metrics.py "$1" || return 1
    [ "$(grep -oE '"round":(1|null|2),"stage":"(before|after)_(grow|idle|call|await|fails)"' "$SCRATCH/markers" | sort -u | wc -l)" -eq 10 ]
}
stages_without_library() { PYTHONPATH=$PACKAGE without_preload "$PYTHON" "$HERE/stages_and_metrics.py" none; }
page_of_this_process() {
    local path
    path=$(dirname "$COMMAND"):$PATH
    PATH=$path with_package jemalloc page_of_this_process.py
    PATH=$path PYTHONPATH=$PACKAGE without_preload "$PYTHON" "$HERE/page_of_this_process.py"
}
without_library() { PYTHONPATH=$PACKAGE without_preload "$PYTHON" "$HERE/without_library.py"; }
quietly() { # COMMAND...: shows its stderr only if it fails
    "$@" 2>"$SCRATCH/stderr" || { cat "$SCRATCH/stderr"; return 1; }
}
with_package() { # MODE PROGRAM ARGUMENT...
    quietly with_markers "$1" PYTHONPATH="$PACKAGE:$HERE" "$PYTHON" "$HERE/$2" "${@:3}"
}

stages_once() {
    quietly hooked "$1" FLARENA_LOG=off "$PYTHON" "$HERE/hooks_mark_each_stage_once.py" "$ROOT/docs/markers.md"
}

in_logs() { # MODE: the line on stderr is that in the log
    mkdir -p "$SCRATCH/logs" && rm -f "$SCRATCH"/logs/*
    quietly hooked "$1" FLARENA_LOG=off "$PYTHON" "$HERE/markers_in_nvflares_log.py" "$SCRATCH/logs"
    [ "$(grep -c ' round_started: ' "$SCRATCH/stderr")" -eq 4 ]
    grep -qxF "$(sed -n '1s/.* - INFO - //p' "$SCRATCH/logs/log.txt")" "$SCRATCH/stderr"
}

cleans_up() { # MODE ROUNDS
    quietly hooked "$1" FLARENA_GC=off FLARENA_LOG=off NVFLARE_CLIENT_MEMORY_GC_ROUNDS="$2" NVFLARE_CUDA_EMPTY_CACHE=true \
        "$PYTHON" "$HERE/cleans_up_after_results.py"
}

wrong_arguments() { PYTHONPATH=$PACKAGE "$@" "$PYTHON" "$HERE/wrong_arguments.py" 2>&1 | grep -v '^\[RSS\]'; }
rounds_of_right() { # prints the round of each marker of a call with right arguments
    with_markers glibc PYTHONPATH="$PACKAGE" "$PYTHON" "$HERE/wrong_arguments.py" 2>/dev/null >&2
    grep '"stage":"right"' "$SCRATCH/markers" | grep -oE '"round":[0-9]+' | tr '\n' ' '
}

mark_results() { # MODE
    local mark=(FLARENA_LOG=off PYTHONPATH="$PACKAGE" "$PYTHON" -c 'import flarena; print(flarena.mark("here"))')
    in_mode "$1" "${mark[@]}" 2>/dev/null
    with_markers "$1" "${mark[@]}" 2>/dev/full
    in_mode "$1" NVFLARE_CLIENT_MEMORY_PROFILE=1 "${mark[@]}" 2>/dev/null
    in_mode "$1" NVFLARE_CLIENT_MEMORY_PROFILE=1 "${mark[@]}" 2>/dev/full
    in_mode "$1" NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_MARKER_FILE=/nowhere/x "${mark[@]}" 2>/dev/null
}
hooks_of() { # COMMAND...: what the hooks install
    "$@" PYTHONPATH="$HOOKS" "$PYTHON" "$HERE/print_hooks.py"
}
new_modules() { # MODE: those that the hooks add at a start with nothing but the preload set
    local list='import sys; print(*sorted(sys.modules), sep="\n")'
    without_preload "$PYTHON" -c "$list" >"$SCRATCH/bare"
    in_mode "$1" PYTHONPATH="$HOOKS" "$PYTHON" -c "$list" |
        LC_ALL=C comm -13 "$SCRATCH/bare" - | grep -vx sitecustomize | tr '\n' ' '
}
activated_twice() { # by a .pth file and by the hook directory
    # shellcheck disable=SC2016
    in_mode jemalloc PYTHONPATH="$HOOKS:$PACKAGE" "$PYTHON" -c \
        'import runpy, sys, flarena._activate as a; a.activate(); a.activate(); runpy.run_path(sys.argv[1])' \
        "$HERE/print_hooks.py" | cut -d ' ' -f 1
}
isolated() { in_mode jemalloc PYTHONPATH="$HOOKS" "$PYTHON" -I "$HERE/print_hooks.py" | cut -d ' ' -f 1; }

HOSTILE_CASES=(hooks handler_in_hook handler_of_sigterm lazy_pools threading_replaced collections_walked coroutines subinterpreter interrupted)
hostile() { # CASE: prints its name if it fails
    COMMAND_TIMEOUT=240 in_mode glibc NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_MARKER_FILE="$SCRATCH/hostile-$1" FLARENA_SITES=on \
        FLARENA_COMMAND="$COMMAND" PYTHONPATH="$HOOKS:$PACKAGE" "$PYTHON" "$HERE/hostile.py" "$1" \
        >"$SCRATCH/hostile-$1.out" 2>&1 && grep -qx 'as without flarena' "$SCRATCH/hostile-$1.out" && return
    printf '%s failed\n' "$1"
    cat "$SCRATCH/hostile-$1.out"
}
all_hostile() { # two at a time
    local number
    for number in "${!HOSTILE_CASES[@]}"; do
        hostile "${HOSTILE_CASES[number]}" &
        [ $((number % 2)) -eq 0 ] || wait
    done
    wait
}

# Creates a directory with a sitecustomize of the user.
user_site() { # CODE
    mkdir -p "$SCRATCH/user"
    printf '%s\n' "$1" >"$SCRATCH/user/sitecustomize.py"
}
imports_user_site() {
    user_site 'owner = "user"'
    in_mode jemalloc PYTHONPATH="$HOOKS:$SCRATCH/user:$HOOKS" "$PYTHON" -c \
        'import sys, sitecustomize; print(sitecustomize.owner, sitecustomize.__file__ == sys.argv[1])' \
        "$SCRATCH/user/sitecustomize.py"
}
imports_user_site_once() { # with two copies of the package
    user_site 'print("sitecustomize of the user")'
    mkdir -p "$SCRATCH/second"
    cp -r "$PACKAGE/flarena" "$SCRATCH/second/"
    in_mode jemalloc PYTHONPATH="$HOOKS:$SCRATCH/second/flarena/hooks:$SCRATCH/user" "$PYTHON" -c pass
}
broken_user_site() { # Python's message is the same with and without the hooks
    user_site "raise ValueError('an error of the user')"
    without_preload PYTHONPATH="$SCRATCH/user" "$PYTHON" -c 'print(1)' >"$SCRATCH/bare" 2>&1
    in_mode jemalloc PYTHONPATH="$HOOKS:$SCRATCH/user" "$PYTHON" -c 'print(1)' >"$SCRATCH/hooked" 2>&1
    grep -q 'an error of the user' "$SCRATCH/bare"
    diff "$SCRATCH/bare" "$SCRATCH/hooked"
}
missing_package() { # the hook directory without its package
    mkdir -p "$SCRATCH/lost/hooks"
    cp "$HOOKS/sitecustomize.py" "$SCRATCH/lost/hooks/"
    in_mode jemalloc PYTHONPATH="$SCRATCH/lost/hooks" "$PYTHON" -c 'print("runs")' 2>&1
}
CANNOT_BE_USED=$'flarena: the Python hooks cannot be used (ModuleNotFoundError); the program continues without them\n'
copied_hooks() { # COMMAND...: with a copy of the package that the command may change
    rm -rf "$SCRATCH/copied" && mkdir "$SCRATCH/copied" && cp -r "$PACKAGE/flarena" "$SCRATCH/copied/"
    "$@"
}
without_settings() {
    rm "$SCRATCH/copied/flarena/_settings.py"
    in_mode jemalloc FLARENA_GC=off PYTHONPATH="$SCRATCH/copied/flarena/hooks" "$PYTHON" -c 'print("runs")' 2>&1
}
unreadable_settings() { copied_hooks without_settings; }
removed_after_start() { # as if the process had changed to a user who cannot read the package
    in_mode jemalloc PYTHONPATH="$SCRATCH/copied/flarena/hooks:$HERE/fake" "$PYTHON" -c '
import shutil, sys
shutil.rmtree(sys.argv[1])
import nvflare.apis.utils.event, nvflare.client.api as api
print(api.__name__.rpartition(".")[2])' "$SCRATCH/copied/flarena" 2>&1
}
unreadable_later() { copied_hooks removed_after_start; }

first_marks() { # KIND: the results that are right
    case $1 in without*) printf 'False\nFalse\nFalse' ;; *) printf 'True\nTrue\nTrue' ;; esac
}
marks_first() { # PATH COMMAND...
    local path=$1 case
    shift
    for case in signal_handler finalizer fork; do
        "$@" PYTHONPATH="$path" "$PYTHON" -W ignore "$HERE/marks_at_any_time.py" "$case" 2>"$SCRATCH/stderr"
        grep -v '^\[RSS\]' "$SCRATCH/stderr" || true
    done
}

only_sitecustomize() { find "$HOOKS" -mindepth 1 -not -name __pycache__ -not -name '*.pyc' -printf '%f\n'; }

failing_hook() { # the model has no attribute current_round
    hooked jemalloc FAKE_RECEIVE=odd "$PYTHON" "$HERE/receive_and_send.py" 2>&1 | grep -v '^\[RSS\]'
}
failing_receive() { # receive() of NVFlare raises
    hooked jemalloc FAKE_RECEIVE=raises "$PYTHON" "$HERE/receive_and_send.py" 2>&1 | grep -v '^\[RSS\]' | tail -n 1 || true
}
markers_without_library() {
    without_preload NVFLARE_CLIENT_MEMORY_PROFILE=1 NVFLARE_ENABLE_JEMALLOC_PRELOAD=true \
        PYTHONPATH="$HOOKS:$HERE/fake" "$PYTHON" "$HERE/receive_and_send.py" 2>&1
}

last_send() {
    hooked glibc "$PYTHON" "$HERE/terminate_in_send.py" "$HERE/receive_and_send.py" 2>/dev/null
    echo "send $(count_stage send)"
}
own_handler() { # the program handles SIGTERM itself
    hooked glibc "$PYTHON" "$HERE/terminate_in_send.py" -c '
import signal, sys, runpy
signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
runpy.run_path(sys.argv[1])' "$HERE/receive_and_send.py" 2>/dev/null
}

contains_no_token() { # MODE
    hooked "$1" FLARENA_LOG=info FAKE_RECEIVE=odd AUTH_TOKEN=$CANARY "$PYTHON" "$HERE/receive_and_send.py" \
        --token $CANARY >"$SCRATCH/all" 2>&1
    hooked "$1" FLARENA_LOG=info AUTH_TOKEN=$CANARY "$PYTHON" "$HERE/receive_and_send.py" \
        --token $CANARY >>"$SCRATCH/all" 2>&1
    [ "$(count_stage send)" -eq 1 ]
    ! grep -F "$CANARY" "$SCRATCH/markers" "$SCRATCH/all"
}

lint() { # with tools in a separate environment
    local venv code=("$PACKAGE" "$ROOT"/{src/shim,tests,scripts,docker,bench,fuzz})
    venv=$("$ROOT/scripts/venv.sh" lint-2.4.1 mypy==2.4.1 ruff==0.17.5 pylint==4.1.4 2>/dev/null) ||
        { echo "mypy, ruff and pylint cannot be installed"; return 77; }
    "$venv/bin/mypy" --config-file "$ROOT/pyproject.toml" --strict "$PACKAGE/flarena"
    { MYPYPATH=$PACKAGE "$venv/bin/mypy" --strict -c 'import flarena; flarena.trimm()' || true; } |
        grep 'Module has no attribute "trimm"' || { echo "mypy accepts a name that the package lacks"; return 1; }
    "$venv/bin/pylint" --score=n --disable=all --enable=cyclic-import "$PACKAGE/flarena"
    # Because of the folder build/ ruff would sort the module build as a first-party one.
    "$venv/bin/ruff" check --config 'lint.isort.known-third-party = ["build"]' \
        --line-length 120 --select E,F,W,I,B,UP,SIM115 "${code[@]}"
    "$venv/bin/ruff" format --line-length 120 --check "${code[@]}"
}

which_code() {
    "$PYTHON" -c 'import sys; sys.exit(not hasattr(sys, "stdlib_module_names"))' || { echo "Python before 3.10"; return 77; }
    PYTHONPATH=$PACKAGE "$PYTHON" "$HERE/which_code_reads_results.py" "$SCRATCH"
}

while read -r _ PYTHON; do
    name=$("$PYTHON" -c 'import sys; print("%s Python %d.%d" % (("the", "Debian")[sys.executable.startswith("/usr/bin")], *sys.version_info[:2]))')
    for kind in "without_preload" "with_markers glibc" "in_mode jemalloc"; do
        # shellcheck disable=SC2086 # a command and its argument
        check_output "$name, $kind: mark() with a wrong argument returns False and writes one line" \
            $'flarena: mark(): the stage must be a text, not int; the marker is not written\n{False}\n[True, True, True, True, True]' wrong_arguments $kind
    done
    check_output "$name: mark() accepts a whole float and an index as the round" \
        '"round":3 "round":3 "round":1 "round":3 ' rounds_of_right
    check_output "$name: a result is dropped only beside code that cannot read it, also by a function or a module that it uses" \
        "Saves Measures" which_code
    check_output "$name: without the library stages measure and mark nothing" "not loaded" stages_without_library
    check_output "$name: a notebook shows the report of this process; without a marker file it says how to get one" \
        $'True True\nTrue\nTrue\n0\nFalse True\nTrue\nTrue\n1' page_of_this_process
    check "$name: without the library the package reports that it is not loaded, and every function works" without_library
    for mode in glibc jemalloc; do
        check "$name, $mode: with the library the package reports the allocator, the version and the statistics" with_package $mode with_library.py $mode
        check_output "$name, $mode: stages mark begin and end and measure growth and peak; metrics and the keys of the statistics are complete" \
            "$mode" stages_and_metrics $mode
        check "$name, $mode: trim and cleanup_memory release memory" with_package $mode trim_releases_memory.py
        check "$name, $mode: mark() with unusual names and rounds writes valid markers" with_package $mode odd_markers.py
        check_output "$name, $mode: mark() is true only for a written marker: markers off, to a file, to stderr, to neither, to a bad file" \
            $'False\nTrue\nTrue\nFalse\nFalse' mark_results $mode
        check "$name, $mode: the hooks write one marker for each stage and do not change the hooked functions" stages_once $mode
        check "$name, $mode: markers of hooks go to the log files of NVFlare once, and to no other handler" in_logs $mode
        check "$name, $mode: NVFLARE_CLIENT_MEMORY_GC_ROUNDS=2 cleans up after each second result, and not twice" cleans_up $mode 2
        check "$name, $mode: NVFLARE_CLIENT_MEMORY_GC_ROUNDS=0 never cleans up" cleans_up $mode 0
        check "$name, $mode: no marker and no message contains a token of argv or the environment" contains_no_token $mode
    done
    check_output "$name: with markers and collections off the hooks install no finder and import no large module" \
        "0 light False" hooks_of in_mode glibc FLARENA_GC=off
    check_output "$name: without the library the hooks install no finder" "0 light False" hooks_of without_preload
    check_output "$name: by default the hooks install one finder and import no large module" \
        "1 light False" hooks_of in_mode glibc
    check_output "$name: by default the hooks load one module of the package at start, and no other one" \
        "flarena._activate " new_modules glibc
    check_output "$name: two activations install one finder" 1 activated_twice
    check_output "$name: python -I installs no finder" 0 isolated
    check_output "$name: the user's sitecustomize is imported under its own name" "user True" imports_user_site
    check_output "$name: with two hook directories the user's sitecustomize is imported once" "sitecustomize of the user" imports_user_site_once
    check "$name: an error in the user's sitecustomize is reported as without the hooks" broken_user_site
    check_output "$name: hooks without their package print one line, and the program runs" \
        "${CANNOT_BE_USED}runs" missing_package
    check_output "$name: hooks whose settings cannot be imported print one line, and the program runs" \
        "${CANNOT_BE_USED}runs" unreadable_settings
    check_output "$name: hooks whose package cannot be read any more print one line, and the program continues" \
        "${CANNOT_BE_USED}api" unreadable_later
    for kind in "without_preload" "with_markers glibc" "with_markers jemalloc"; do
        for path in "$PACKAGE" "$HOOKS"; do
            # shellcheck disable=SC2086 # a command and its argument
            check_output "$name, $kind, ${path##*/} on PYTHONPATH: the first mark() also works in a signal handler, at Python's end and in a forked child" \
                "$(first_marks "$kind")" marks_first "$path" $kind
        done
    done
    check_output "$name: a hook that fails prints one line, and the program continues" \
        $'flarena: the received hook failed (AttributeError); the program continues, some markers may be missing\nsent' failing_hook
    check_output "$name: an exception of NVFlare passes through a hook" "RuntimeError: the receive of the fake failed" failing_receive
    check_output "$name: without the library the hooks print nothing" sent markers_without_library
    check_output "$name: a trainer terminated in send() writes the marker of send first" $'status -15\nsend 1' last_send
    check_output "$name: a SIGTERM handler of the program stays installed" "status 9" own_handler
done < <(python_versions python3 /usr/bin/python3)
while read -r version PYTHON; do
    check_output "Python $version: hostile objects, signal handlers, tasks and a subinterpreter see what they see without the library" \
        "" all_hostile
done < <(every_python | sort -u -k 1,1)
check_output "the hook directory contains no module but sitecustomize" sitecustomize.py only_sitecustomize
check "the Python code is formatted, linted and typed" lint
finish
