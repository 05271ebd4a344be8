#!/usr/bin/env bash
# The Python package: its API with and without the preload, the hooks, and what they must never do.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

HERE=$ROOT/tests/python
PACKAGE=$ROOT/src/python
HOOKS=$PACKAGE/flarena/hooks
CANARY=canary-5eCr3t-token
export PYTHONDONTWRITEBYTECODE=1 # leave no files in the tree

# Each Python of the machine that differs: Debian's own, and the first of the PATH.
pythons() {
    local python
    for python in python3 /usr/bin/python3; do
        command -v "$python" >/dev/null && "$python" -c 'import sys; print(sys.executable)'
    done | sort -u
}

marking() { # MODE COMMAND...: markers on, into a fresh file
    local mode=$1
    shift
    rm -f "$SCRATCH/markers"
    in_mode "$mode" NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_MARKER_FILE="$SCRATCH/markers" "$@"
}

# The hooks come first, as a launcher puts them; the stand-in for NVFlare and the programs' helper follow.
hooked() { # MODE [NAME=VALUE...] COMMAND...
    local mode=$1
    shift
    marking "$mode" PYTHONPATH="$HOOKS:$HERE/fake:$HERE" "$@"
}

count_stage() { # STAGE: how often it was marked
    grep -c "\"stage\":\"$1\"" "$SCRATCH/markers"
}

no_preload() { PYTHONPATH=$PACKAGE without_preload "$PYTHON" "$HERE/tells_the_truth_without_preload.py"; }
with_package() { # MODE PROGRAM ARGUMENT...
    local mode=$1 program=$2
    shift 2
    marking "$mode" PYTHONPATH="$PACKAGE:$HERE" "$PYTHON" "$HERE/$program" "$@" 2>"$SCRATCH/stderr" ||
        { cat "$SCRATCH/stderr"; return 1; }
}

stages_once() {
    hooked "$1" FLARENA_LOG=off "$PYTHON" "$HERE/hooks_mark_each_stage_once.py" "$ROOT/docs/markers.md" 2>"$SCRATCH/stderr" ||
        { cat "$SCRATCH/stderr"; return 1; }
}

mark_answers() { # MODE
    local say='import flarena; print(flarena.mark("here"))'
    in_mode "$1" PYTHONPATH="$PACKAGE" FLARENA_LOG=off "$PYTHON" -c "$say" 2>/dev/null
    marking "$1" FLARENA_LOG=off PYTHONPATH="$PACKAGE" "$PYTHON" -c "$say" 2>/dev/full
    in_mode "$1" NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_LOG=off PYTHONPATH="$PACKAGE" "$PYTHON" -c "$say" 2>/dev/null
    in_mode "$1" NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_LOG=off PYTHONPATH="$PACKAGE" "$PYTHON" -c "$say" 2>/dev/full
    in_mode "$1" NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_LOG=off FLARENA_MARKER_FILE=/nowhere/x PYTHONPATH="$PACKAGE" "$PYTHON" -c "$say" 2>/dev/null
}
nothing_asked() { # a process gets no finder, and nothing heavy is imported
    in_mode glibc FLARENA_GC=off PYTHONPATH="$HOOKS" "$PYTHON" "$HERE/says_what_is_hooked.py"
}
by_default() { in_mode glibc PYTHONPATH="$HOOKS" "$PYTHON" "$HERE/says_what_is_hooked.py"; }
not_preloaded() { without_preload PYTHONPATH="$HOOKS" "$PYTHON" "$HERE/says_what_is_hooked.py"; }
asked() { in_mode jemalloc PYTHONPATH="$HOOKS" "$PYTHON" "$HERE/says_what_is_hooked.py"; }
asked_twice() { # a .pth file and the hook directory at once
    # shellcheck disable=SC2016
    in_mode jemalloc PYTHONPATH="$HOOKS:$PACKAGE" "$PYTHON" -c \
        'import runpy, sys, flarena._activate as a; a.activate(); a.activate(); runpy.run_path(sys.argv[1])' \
        "$HERE/says_what_is_hooked.py" | cut -d ' ' -f 1
}
isolated() { in_mode jemalloc PYTHONPATH="$HOOKS" "$PYTHON" -I "$HERE/says_what_is_hooked.py" | cut -d ' ' -f 1; }

# A directory with a sitecustomize of the user's.
user_site() { # CODE
    mkdir -p "$SCRATCH/user"
    printf '%s\n' "$1" >"$SCRATCH/user/sitecustomize.py"
}
chains() {
    user_site 'mine = "the user'"'"'s"'
    in_mode jemalloc PYTHONPATH="$HOOKS:$SCRATCH/user:$HOOKS" "$PYTHON" -c \
        'import sys, sitecustomize; print(sitecustomize.mine, sitecustomize.__file__ == sys.argv[1])' \
        "$SCRATCH/user/sitecustomize.py"
}
chains_a_second_copy() { # two installed flarenas hand over once each, then to the user's
    user_site 'print("the user has the last word")'
    mkdir -p "$SCRATCH/second"
    cp -r "$PACKAGE/flarena" "$SCRATCH/second/"
    in_mode jemalloc PYTHONPATH="$HOOKS:$SCRATCH/second/flarena/hooks:$SCRATCH/user" "$PYTHON" -c pass
}
broken_user_site() { # what Python says about it is the same with and without us
    user_site "raise ValueError('a fault of the user')"
    without_preload PYTHONPATH="$SCRATCH/user" "$PYTHON" -c 'print(1)' >"$SCRATCH/bare" 2>&1
    in_mode jemalloc PYTHONPATH="$HOOKS:$SCRATCH/user" "$PYTHON" -c 'print(1)' >"$SCRATCH/chained" 2>&1
    grep -q 'a fault of the user' "$SCRATCH/bare"
    diff "$SCRATCH/bare" "$SCRATCH/chained"
}
broken_package() { # the hook directory without the package it belongs to
    mkdir -p "$SCRATCH/lost/hooks"
    cp "$HOOKS/sitecustomize.py" "$SCRATCH/lost/hooks/"
    in_mode jemalloc PYTHONPATH="$SCRATCH/lost/hooks" "$PYTHON" -c 'print("runs")' 2>&1
}
only_sitecustomize() { find "$HOOKS" -mindepth 1 -not -name __pycache__ -not -name '*.pyc' -printf '%f\n'; }

owns_malloc() { in_mode "$1" PYTHONPATH="$PACKAGE" "$PYTHON" "$HERE/says_who_owns_malloc.py"; }
stands_down() {
    [ -e "$SCRATCH/other.so" ] || gcc -shared -fPIC -o "$SCRATCH/other.so" "$HERE/other_allocator.c"
    in_mode "$1" LD_PRELOAD="$SCRATCH/other.so:$LIB" PYTHONPATH="$PACKAGE" "$PYTHON" "$HERE/says_who_owns_malloc.py"
}

failing_hook() { # an odd model: the job gets it, one line is said, nothing is raised
    hooked jemalloc FAKE_RECEIVE=odd "$PYTHON" "$HERE/sends_until_told.py" 2>&1 | grep -v '^\[RSS\]'
}
failing_receive() { # NVFlare's own exceptions pass
    hooked jemalloc FAKE_RECEIVE=raises "$PYTHON" "$HERE/sends_until_told.py" 2>&1 | grep -v '^\[RSS\]' | tail -n 1 || true
}
no_shim() { # asked for, but the process does not run on the library
    without_preload NVFLARE_CLIENT_MEMORY_PROFILE=1 NVFLARE_ENABLE_JEMALLOC_PRELOAD=true \
        PYTHONPATH="$HOOKS:$HERE/fake" "$PYTHON" "$HERE/sends_until_told.py" 2>&1
}

last_send() {
    hooked glibc "$PYTHON" "$HERE/terminates_inside_send.py" "$HERE/sends_until_told.py" 2>/dev/null
    echo "send $(count_stage send)"
}
own_handler() { # a program that handles SIGTERM itself keeps its handler
    hooked glibc "$PYTHON" "$HERE/terminates_inside_send.py" -c '
import signal, sys, runpy
signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
runpy.run_path(sys.argv[1])' "$HERE/sends_until_told.py" 2>/dev/null
}

no_token() { # MODE
    hooked "$1" FLARENA_LOG=info FAKE_RECEIVE=odd AUTH_TOKEN=$CANARY "$PYTHON" "$HERE/sends_until_told.py" \
        --token $CANARY >"$SCRATCH/all" 2>&1
    hooked "$1" FLARENA_LOG=info AUTH_TOKEN=$CANARY "$PYTHON" "$HERE/sends_until_told.py" \
        --token $CANARY >>"$SCRATCH/all" 2>&1
    [ "$(count_stage send)" -eq 1 ]
    ! grep -F "$CANARY" "$SCRATCH/markers" "$SCRATCH/all"
}

lint() { # the tools are kept in an environment of their own
    local venv=$ROOT/build/venv-lint code=("$PACKAGE" "$HERE" "$ROOT/tests/garbage" "$ROOT/tests/nvflare" "$ROOT/tests/pools" "$ROOT/tests/recipes" "$ROOT/tests/sites" "$ROOT/scripts")
    [ -x "$venv/bin/mypy" ] && [ -x "$venv/bin/ruff" ] || {
        python3 -m venv "$venv" && "$venv/bin/pip" install --quiet --disable-pip-version-check mypy==2.4.1 ruff==0.17.5
    } >/dev/null 2>&1 || { echo "mypy and ruff cannot be installed"; return 77; }
    "$venv/bin/mypy" --strict "$PACKAGE/flarena"
    # By the folder build/ of the root ruff would take the module of that name for something else.
    "$venv/bin/ruff" check --config 'lint.isort.known-third-party = ["build"]' \
        --line-length 120 --select E,F,W,I,B,UP "${code[@]}"
    "$venv/bin/ruff" format --line-length 120 --check "${code[@]}"
}

for PYTHON in $(pythons); do
    name=$("$PYTHON" -c 'import sys; print("%s Python %d.%d" % (("the", "Debian")[sys.executable.startswith("/usr/bin")], *sys.version_info[:2]))')
    check "$name: without the preload the package works and tells the truth" no_preload
    for mode in glibc jemalloc; do
        check "$name, $mode: the package names the allocator in use" with_package $mode answers_under_the_preload.py $mode
        check_output "$name, $mode: the library knows that malloc is its own" "owner True" owns_malloc $mode
        check_output "$name, $mode: it stands down when another allocator comes first" "owner False" stands_down $mode
        check "$name, $mode: trim and cleanup_memory give memory back" with_package $mode trim_gives_memory_back.py
        check "$name, $mode: odd names and rounds make valid markers" with_package $mode marks_what_it_is_told.py
        check_output "$name, $mode: mark() is true only for a marker that was written: off, file, stderr, neither, a bad file" \
            $'False\nTrue\nTrue\nFalse\nFalse' mark_answers $mode
        check "$name, $mode: threads and forked children mark without loss" with_package $mode marks_from_many_threads_and_forks.py
        check "$name, $mode: the hooks mark each stage once and change nothing" stages_once $mode
        check "$name, $mode: a token in argv or environ reaches no marker and no message" no_token $mode
    done
    check_output "$name: when nothing is asked for, nothing is hooked or imported" "0 light False" nothing_asked
    check_output "$name: without the library nothing is hooked" "0 light False" not_preloaded
    check_output "$name: by default one finder waits, for collections, and nothing heavy is imported" "1 light False" by_default
    check_output "$name: when asked, one finder waits and nothing heavy is imported" "1 light False" asked
    check_output "$name: activated twice, it is hooked once" 1 asked_twice
    check_output "$name: python -I gets no hooks" 0 isolated
    check_output "$name: the user's sitecustomize takes our place" "the user's True" chains
    check_output "$name: two installed hook directories hand over once" "the user has the last word" chains_a_second_copy
    check "$name: a broken sitecustomize of the user is reported as ever" broken_user_site
    check_output "$name: hooks without their package cost one line" \
        $'flarena: the Python hooks cannot be used (ModuleNotFoundError)\nruns' broken_package
    check_output "$name: a hook that fails says one line and the job goes on" \
        $'flarena: the received hook failed (AttributeError); the program continues, some markers may be missing\nsent' failing_hook
    check_output "$name: exceptions of NVFlare pass through a hook" "RuntimeError: the receive of the fake failed" failing_receive
    check_output "$name: without the library the hooks are silent" sent no_shim
    check_output "$name: a trainer that is terminated inside send() marks it first" $'status -15\nsend 1' last_send
    check_output "$name: a program's own SIGTERM handler stays" "status 9" own_handler
done
check_output "the hook directory hides no module of the program's" sitecustomize.py only_sitecustomize
check "the Python code is formatted, linted and typed" lint
finish
