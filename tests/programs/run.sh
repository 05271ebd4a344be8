#!/usr/bin/env bash
# Common programs print the same with the library as without it, with the same exit status and the same stderr, and have
# no additional thread.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
cd "$ROOT/tests/programs" || exit 1
export COMMAND_TIMEOUT=400
WORK=$SCRATCH/work
mkdir "$WORK"

# shellcheck source=tests/programs/programs.sh
. ./programs.sh

# The function runs in a new bash, which loads the library like all its children.
run_program() { # MODE|bare NAME
    local runner=(in_mode "$1")
    [ "$1" = bare ] && runner=(without_preload)
    # Always the same folder: programs print its path.
    rm -rf "$WORK"
    mkdir "$WORK"
    # shellcheck disable=SC2016 # the inner shell expands them
    "${runner[@]}" WORK="$WORK" PROGRAMS="$PWD/programs.sh" \
        bash -c '. "$PROGRAMS" && cd "$WORK" && "$1"' bash "$2" >"$SCRATCH/$1.out" 2>"$SCRATCH/$1.err"
    echo "exit status $?" >>"$SCRATCH/$1.out"
}

same_as_bare() { # MODE NAME
    run_program "$1" "$2"
    diff "$SCRATCH/bare.out" "$SCRATCH/$1.out" && diff "$SCRATCH/bare.err" "$SCRATCH/$1.err"
}

# Sets PID to the last descendant, whose ancestors are env and timeout. Fails while it does not run the command yet.
runs_command() { # PROCESS COMMAND...
    local child words
    PID=$1
    while child=$(pgrep -P "$PID" | head -n 1) && [ -n "$child" ]; do PID=$child; done
    mapfile -d '' -t words 2>/dev/null <"/proc/$PID/cmdline" || return
    [ ${#words[@]} -gt 0 ] || return # in the middle of an exec
    [ "${words[0]##*/} ${words[*]:1}" = "${*:2}" ] || [ "${words[0]##*/}" = "${*:2}" ]
}

# Counts the threads of a program that waits for input.
threads_of() { # MODE|bare COMMAND...
    local process runner=(in_mode "$1") tries=0
    [ "$1" = bare ] && runner=(without_preload)
    rm -f "$SCRATCH/input"
    mkfifo "$SCRATCH/input"
    "${runner[@]}" "${@:2}" <"$SCRATCH/input" >/dev/null 2>&1 &
    process=$!
    exec 7>"$SCRATCH/input"
    until runs_command "$process" "${@:2}" || [ $((tries += 1)) -gt 600 ]; do sleep 0.1; done
    sleep 0.5 # it may start threads
    sed -n 's/^Threads:\t//p' "/proc/$PID/status"
    exec 7>&-
    wait
}

no_extra_thread() { # MODE COMMAND...
    local mode=$1 bare preloaded
    shift
    bare=$(threads_of bare "$@")
    preloaded=$(threads_of "$mode" "$@")
    echo "bare: $bare threads, preloaded: $preloaded"
    [ -n "$bare" ] && [ "$bare" = "$preloaded" ]
}

need pgrep procps || { fail "pgrep is there" "install the package procps"; finish; exit; }
need git
need perl
for program in "${PROGRAMS_TO_RUN[@]}"; do
    name=${program%%:*} command=${program#*:}
    if ! command -v "$command" >/dev/null; then
        skip "$name prints the same with the library" "no $command"
        continue
    fi
    run_program bare "program_$name"
    if ! grep -q 'exit status 0' "$SCRATCH/bare.out"; then
        skip "$name prints the same with the library" "it fails without the library: $(tail -n 1 "$SCRATCH/bare.err")"
        continue
    fi
    for mode in glibc jemalloc; do
        check "$mode: $name prints the same with the library" same_as_bare "$mode" "program_$name"
    done
done

git init -q "$SCRATCH/repository"
for mode in glibc jemalloc; do
    check "$mode: bash has no extra thread" no_extra_thread "$mode" bash -c 'read -r'
    check "$mode: cat has no extra thread" no_extra_thread "$mode" cat
    check "$mode: git has no extra thread" no_extra_thread "$mode" git -C "$SCRATCH/repository" cat-file --batch
    check "$mode: perl has no extra thread" no_extra_thread "$mode" perl -e '<STDIN>'
    check "$mode: python3 has no extra thread" no_extra_thread "$mode" python3 -c 'input()'
done
finish
