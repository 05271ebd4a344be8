#!/usr/bin/env bash
# Allocation sites in every Python of the machine: the right line is named, and sites stay off where the library cannot
# read frames.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
cd "$ROOT/tests/sites" || exit 1

PACKAGE=$ROOT/src/python
HOOKS=$PACKAGE/flarena/hooks
FLARENA=$ROOT/target/release/flarena
NUMPY=$ROOT/build/venv-2.9.0 # an environment of another suite, which may not be complete yet
COMMAND_TIMEOUT=240
CANARY=canary-5eCr3t
export PYTHONDONTWRITEBYTECODE=1 # leave no files in the tree

on() { # MODE COMMAND...: sites on, with the hooks
    local mode=$1
    shift
    in_mode "$mode" FLARENA_SITES=on PYTHONPATH="$HOOKS:$PACKAGE" "$@"
}

leak() { # MODE KIND; without samples, because the small blocks of `import torch` are larger than these leaks
    on "$1" FLARENA_SITES_SAMPLE=off "$PYTHON" leak.py "$2"
}
frames_agree() { on glibc "$PYTHON" frames_agree.py; }
failed_check() { in_mode glibc PYTHONPATH="$PACKAGE" "$PYTHON" failed_check.py "$1" 2>&1; }
# Three tries, because Python 3.10 itself sometimes crashes at its end: in take_gil, when a daemon thread wakes too late.
exit_and_fork() { # MODE
    local tries said
    for tries in 1 2 3; do # -W: newer versions warn of forks with threads
        said=$(on "$1" FLARENA_SITES_SAMPLE=1K "$PYTHON" -W ignore exit_and_fork.py) && break
        [ "$tries" -lt 3 ] || return 1
    done
    echo "$said"
}
holders() { on "$1" FLARENA_SITES_SAMPLE=off "$PYTHON" holders.py; } # MODE; the program counts the sites
holders_in_time() { on glibc FLARENA_SITES_SAMPLE=off "$PYTHON" holders_in_time.py "$1"; }
no_program_code() { on glibc "$PYTHON" no_program_code.py "$1"; }
by_backend() { on "$1" FLARENA_RECYCLE=off FLARENA_SITES_SAMPLE=off "${@:2}"; } # MODE COMMAND...
is_off() { in_mode glibc PYTHONPATH="$HOOKS:$PACKAGE" "$PYTHON" -c 'from flarena import _sites; print(_sites.request("who")[:60].split(",")[1])'; }

# The last line of a program that its memory limit stops has the line of the program.
at_limit() { # MODE
    local status=0
    in_new_group 300 on "$1" FLARENA_AT_LIMIT=fail "$PYTHON" at_limit.py 2>"$SCRATCH/at_limit" || status=$?
    cat "$SCRATCH/at_limit"
    [ "$status" -ne 77 ] || return 77 # no group
    [ "$status" -eq 3 ] && grep -q "^flarena: 24.0 MB asked at at_limit.py:10 in step, " "$SCRATCH/at_limit"
}

records() { # MODE
    rm -f "$SCRATCH/markers"
    on "$1" FLARENA_SITES_SAMPLE=off NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_MARKER_FILE="$SCRATCH/markers" "$PYTHON" rounds.py $CANARY 2>/dev/null
    python3 check_records.py "$SCRATCH/markers" $CANARY
}

answers() { # PID TEXT: the answer to $SCRATCH/who contains the text; its exit status to STATUS
    STATUS=0
    "$FLARENA" who "$1" >"$SCRATCH/who" 2>&1 || STATUS=$?
    grep -q -- "$2" "$SCRATCH/who"
}
# So many lines of the answer match. A search ends after a second, whether or not it has found something.
holders_are() { # PID NUMBER EXPRESSION [SITE]
    "$FLARENA" who "$1" --holders "${@:4}" >"$SCRATCH/holders"
    cat "$SCRATCH/holders"
    [ "$(grep -cE "$3" "$SCRATCH/holders")" -eq "$2" ]
}

hold() { # COMMAND...: runs it until the end of the check, and sets PID to the number that it prints
    coproc HOLDER { COMMAND_TIMEOUT='' "$@"; }
    trap 'kill "$PID" || true; wait' EXIT
    read -r -u "${HOLDER[0]}" -t 120 PID
}

who_command() { # flarena who on a process that holds memory
    local number
    hold without_preload FLARENA_LIB="$LIB" "$FLARENA" run --sites -- "$PYTHON" holders.py wait
    eventually answers "$PID" ' in cache '
    cat "$SCRATCH/who"
    grep -Eq '^ +[0-9]+ +40\.0 MB +- +1 .*  holders\.py:[0-9]+ in cache <- ' "$SCRATCH/who"
    # Two allocations of one line are one row. Each of its two sites leads to both objects.
    grep -Eq '^ +[0-9]+ +7\.0[01] MB +- +2 .*  holders\.py:[0-9]+ in pair <- ' "$SCRATCH/who"
    "$FLARENA" who "$PID" --json | python3 -c 'import json, sys
who = json.load(sys.stdin)
numbers = [stack["site"] for stack in who["stacks"] if stack.get("frames", [[0, 0, 0]])[0][2] == "pair"]
assert len(numbers) == 2 and who["python"]
print(*numbers, sep="\n")' >"$SCRATCH/numbers"
    while read -r number; do
        eventually holders_are "$PID" 2 '^  bytes [34]\.0[01] MB, held by ' "$number"
    done <"$SCRATCH/numbers"
    "$FLARENA" who "$PID" --folded | grep -E '^holders\.py:[0-9]+ in <module>;holders\.py:[0-9]+ in cache [0-9]+$'
    number=$(awk '/ in garbage / { print $1 }' "$SCRATCH/who")
    eventually holders_are "$PID" 1 'bytes 20\.0 MB, held by cycle: Task\.client_tasks -> ClientTask\.task -> Task' "$number"
    number=$(awk '/ in wait / { print $1 }' "$SCRATCH/who")
    eventually holders_are "$PID" 1 'bytes 10\.0 MB, held by holders\.py:[0-9]+ in wait: model -> bytes' "$number"
    # Without a number: the site with most bytes, which is `cache`.
    eventually holders_are "$PID" 1 'bytes 40\.0 MB, held by module __main__: CACHE -> bytes'
}

ask_holder() { # TEXT: asks until the answer contains it; the answer to $SCRATCH/who, its exit status to STATUS
    eventually answers "$PID" "$1" || true
    cat "$SCRATCH/who"
}

who_without_sites() {
    hold in_mode glibc "$PYTHON" -c 'import os, time
kept = [b"x" * (32 << 20) for _ in range(3)]
print(os.getpid(), flush=True)
time.sleep(600)'
    ask_holder 'records no sites'
    [ "$STATUS" -eq 3 ] && grep -qF 'flarena run --sites' "$SCRATCH/who"
}

RUNNER=()
# Turns sites on in a running program and lets it allocate. The answers are in $SCRATCH/start and $SCRATCH/who.
started_late() { # MODE [KIND]
    rm -f "$SCRATCH/go"
    hold in_mode "$1" "${RUNNER[@]}" "$PYTHON" start_late.py "$SCRATCH/go" ${2:+"$2"}
    [ "${2-}" != import_hook ] || "$FLARENA" trim "$PID" # asks Python's main thread for a collection
    "$FLARENA" who "$PID" --start >"$SCRATCH/start" 2>&1 || return
    cat "$SCRATCH/start"
    : >"$SCRATCH/go"
    # The program writes the number of the process that allocated.
    eventually test -s "$SCRATCH/go"
    "$FLARENA" who "$(cat "$SCRATCH/go")" >"$SCRATCH/who" 2>&1
    cat "$SCRATCH/who"
    "$FLARENA" who "$(cat "$SCRATCH/go")" --holders >"$SCRATCH/holders" 2>&1 || true
    kill "$(cat "$SCRATCH/go")"
}

several_start() { # five clients at the same time; a later one finds sites on
    local clients=()
    hold in_mode glibc "$PYTHON" start_late.py "$SCRATCH/never"
    for _ in 1 2 3 4 5; do
        "$FLARENA" who "$PID" --start &
        clients+=($!)
    done
    wait "${clients[@]}"
    "$FLARENA" who "$PID" --start
}

behind_filter() {
    gcc -D_GNU_SOURCE -I "$ROOT/tests" behind_filter.c -o "$SCRATCH/behind_filter" || return 1
    local RUNNER=(env TEST_MODE=glibc "$SCRATCH/behind_filter") # which check.h reads
    stays_off '' 'a seccomp filter may not allow process_vm_readv'
}

names_later_lines() { # MODE [KIND]
    started_late "$@" || { cat "$SCRATCH/start" && return 1; }
    grep -q 'records the sites of blocks that it allocates from now on' "$SCRATCH/start"
    grep -Eq '^ +[0-9]+ +40\.0 MB +- +5 .*  start_late\.py:[0-9]+ in .*cache <- ' "$SCRATCH/who"
    grep -Eq '^(9[0-9]|10[0-9])\.[0-9] MB more have no site: from before the recording began' "$SCRATCH/who"
    grep -q 'needs sites from its start' "$SCRATCH/holders"
}

stays_off() { # KIND|'' TEXT
    local status=0
    started_late glibc "$1" || status=$?
    cat "$SCRATCH/start"
    [ "$status" -eq 3 ] && grep -q "records no sites: .*$2" "$SCRATCH/start"
}

small_blocks() { # MODE CASE PERIOD; the estimates are shown if they are wrong
    on "$1" FLARENA_SITES_SAMPLE="$3" "$PYTHON" blocks.py "$2" 2>"$SCRATCH/estimates" | tee "$SCRATCH/verdict"
    grep -qx right "$SCRATCH/verdict" || cat "$SCRATCH/estimates"
}

who_small_blocks() { # MODE SAMPLE PATTERN: 90 MB in blocks of 3 KB
    hold on "$1" FLARENA_SITES_SAMPLE="$2" "$PYTHON" -c 'import ctypes, os, time
kept = [ctypes.create_string_buffer(3000) for _ in range(30000)]
bytearray(40 << 20)  # starts the governor
print(os.getpid(), flush=True)
time.sleep(600)'
    ask_holder 'live in'
    grep -Eq "$3" "$SCRATCH/who"
}

# Debian's PyTorch, which brings NumPy.
torch_python || echo "# PyTorch is missing: python3-torch cannot be installed"
while read -r version PYTHON; do
    name="Python $version ($(basename "$(dirname "$(dirname "$PYTHON")")"))"
    check_output "$name: the library reads the same frames as the interpreter" "1 [] True" frames_agree
    for mode in glibc jemalloc; do
        # PyTorch takes seconds to import, and its large blocks are those of the recycler in both modes.
        kinds=(numpy bytes thread generator late)
        [ $mode = jemalloc ] || kinds+=(torch_loss torch_activations torch_optimizer)
        for kind in "${kinds[@]}"; do
            check "$name, $mode: the largest site is the line that leaks: $kind" leak $mode "$kind"
        done
        check_output "$name, $mode: an interpreter forks and ends while threads allocate" ends exit_and_fork $mode
        check "$name, $mode: at the memory limit, the line of the program is named" at_limit $mode
        check "$name, $mode: each marker has its sites, each stack is recorded once, and no record contains an argument" records $mode
        check_output "$name, $mode: holders of a block are a module or a cycle, and the search keeps no block alive" \
            $'module __main__: CACHE -> bytes\ncycle: Task.client_tasks -> ClientTask.task -> Task cycle: Task.client_tasks -> ClientTask.task -> Task\n2 [1] 10' holders $mode
    done
    for mode in glibc jemalloc; do
        check_output "$name, $mode: large blocks of the backend are recorded while they live" \
            $'by_aligned_alloc 5 by_calloc 4 by_malloc 3\nby_realloc 7 by_aligned_alloc 5 by_calloc 4\nby_aligned_alloc 5\nby_aligned_alloc 5\nright' \
            by_backend $mode "$PYTHON" blocks.py backend
        check "$name, $mode: sites that start in a running process name the lines of later blocks" names_later_lines $mode
        check "$name, $mode: with FLARENA_RECYCLE=off the largest site is the line that leaks" by_backend $mode "$PYTHON" leak.py thread
    done
    while read -r case sentence; do
        check_output "$name: $sentence" "no code of the program ran" no_program_code "$case"
    done <<'CASES'
lock a search for holders does not wait for a lock that an object's attributes need
lazy_module a search for holders does not load a lazy module
proxy a proxy whose __class__ raises does not end a search for holders
traced a search for holders in a tracer or profiler keeps the variables of the traced function
bytearrays a bytearray can be resized during a search for holders
hostile a search for holders calls no method of an object, a class or a metaclass
CASES
    check_output "$name: a search for holders that waits for another thread finds them" \
        "module __main__: kept -> bytearray" holders_in_time busy
    check_output "$name: a search for holders finds a variable of a module without a walk through all objects" \
        "module __main__: kept -> bytearray" holders_in_time in_module
    check_output "$name: a search for holders without time names none" "bytearray: not found in time" holders_in_time cut
    check_output "$name: if the self-check fails, sites stay off and one line says so" \
        "flarena: FLARENA_SITES is off in this process: the frames of Python $("$PYTHON" -c 'import sys; print(sys.version.split()[0])') were not read correctly (a function, recursion, a generator, a coroutine, __del__, a callback of C, a thread)"$'\n'"False False True" \
        failed_check other_frames
    check_output "$name: in an unknown version sites stay off and one line says so" \
        $'flarena: FLARENA_SITES is off in this process: this version of Python is not known\nFalse False True' failed_check unknown_version
    check_output "$name: in another implementation sites stay off and one line says so" \
        $'flarena: FLARENA_SITES is off in this process: pypy is not CPython\nFalse False True' failed_check other_implementation
    check_output "$name: the self-check detects the layout of another version and does not crash" differs failed_check other_layout
    check_output "$name: without FLARENA_SITES no block is recorded" '"on":false' is_off
done < <(every_python; [ ! -e "$NUMPY/.ready" ] || python_versions "$NUMPY/bin/python")
read -r _ PYTHON < <(python_versions python3)
check "flarena who names lines and holders of a running process, whose functions it does not run" who_command
check "flarena who says how to switch sites on" who_without_sites
check "sites that start in a running process continue in its forked children" names_later_lines glibc forked
check "the check of the frames of a running process starts no thread" names_later_lines glibc other_threads
check "neither a trim nor the check of the frames of a running process runs an import hook" names_later_lines glibc import_hook
check "the check of the frames of a running process runs no function that the program has replaced" names_later_lines glibc own_functions
check "sites start once if several clients ask" several_start
check "without ctypes sites do not start, and the answer says so" stays_off without_ctypes 'has not imported ctypes'
unless_qemu "does not implement seccomp" check "sites do not start behind a seccomp filter that may kill for the check, and the answer says so" behind_filter
check "sites do not start in another implementation of Python, and the answer says so" stays_off other_implementation 'pypy is not CPython'
check "sites do not start while the main thread runs no Python code, and the answer says so" stays_off blocked 'has not run the check of its frames within 5 s'
check "flarena who says how much memory is in small blocks if these are not sampled" who_small_blocks glibc off \
    '^[89][0-9]\.[0-9] MB are in blocks below .FLARENA_RECYCLE_MIN. \(512 KB by default\), which .FLARENA_SITES_SAMPLE=off. does not record$'
for mode in glibc jemalloc; do
    check "flarena who names the line of small blocks, with the error of the estimate: $mode" who_small_blocks $mode 512K \
        '^ +[0-9]+ +([6-9][0-9]|1[01][0-9])\.[0-9] MB +± [0-9.]+ MB +[0-9]+ .*  <string>:2 in '
    while read -r case period sentence; do
        check_output "$mode: $sentence" right small_blocks $mode "$case" "$period"
    done <<'CASES'
estimates 16K the estimates of blocks of 600 B to 100 KB are right for objects, malloc, calloc and aligned_alloc
freed 16K blocks that another thread frees have no samples
resized 16K a resized block is sampled by its present size, and belongs to the line that resized it
grown_in_place 16K a block that grows within its size class is sampled by its present size
forked 16K a forked child keeps the samples, and what it frees is not freed in the parent
full 1K samples that find no room are counted
CASES
done
check_output "jemalloc: blocks of jemalloc's own mallocx and rallocx are sampled by their present size" \
    right small_blocks jemalloc by_jemalloc 16K
check_output "jemalloc: a block that xallocx resizes in place is estimated by its present size" \
    right small_blocks jemalloc in_place 16K
finish
