# shellcheck shell=bash
# flarena run: the command starts, with the library if possible. Sourced by run.sh.
# shellcheck disable=SC2016  # inner shells expand

#----- the environment of the command. tests/start has more: sub_start.sh runs this command.
check_output "options after the command belong to the command" "--help -- --set" \
    flarena run sh -c 'echo "$@"' sh --help -- --set
active_allocator() {
    flarena run "$@" -- python3 -c "
import ctypes
name = ctypes.CDLL(None).flarena_allocator
name.restype = ctypes.c_char_p
print(name().decode())"
}
check_output "with --allocator jemalloc, jemalloc serves the process" jemalloc active_allocator --allocator jemalloc
check_output "without --allocator, glibc serves the process" glibc active_allocator

#----- signals
same_signals() { # OPTION OF ENV...: flarena run changes neither blocked nor ignored signals
    local show=(grep -E '^Sig(Blk|Ign):' /proc/self/status)
    env --help | grep -q -- --block-signal || { echo "this env cannot block signals" && exit 77; }
    diff <(env "$@" "${show[@]}") <(env "$@" "$FLARENA" run -- "${show[@]}")
}
check "a command inherits the default signals" same_signals
check "a command inherits an ignored SIGPIPE" same_signals --ignore-signal=PIPE
check "a command inherits ignored and blocked signals" same_signals --ignore-signal=HUP --ignore-signal=PIPE --block-signal=USR1 --block-signal=TERM

#----- exit statuses
check "run without a command exits with 2" exits_with 2 flarena run
check "a bad value of an option exits with 2" exits_with 2 flarena run --allocator tcmalloc -- true
check "the error for a command that is not in PATH says so" \
    says "cannot start no-such-command-here: no such command in PATH" flarena run -- no-such-command-here
check "an unknown option before the command is an error" \
    says "unexpected argument '--sties'" flarena run --sties -- true
check "the error for a misspelt subcommand suggests the nearest" says "a similar subcommand exists: 'report'" flarena reprot
check "the error for a program without run says how to start it" says "to start a command: 'flarena run -- COMMAND'" flarena python3
check "without arguments the first commands are printed" says "flarena run -- python3 train.py " flarena
check "without arguments the exit status is 2" exits_with 2 flarena
: >"$SCRATCH/train.py"
check "a script in this folder without Python is recognized" eval \
    'cd "$SCRATCH" && says "no such command in PATH; python3 train.py starts the file in this folder" flarena run -- train.py'
check "the error for a size in two words says to write one" \
    says "cannot start GB: no such command in PATH; write a size as one word, such as 8GB" flarena run --limit 8 GB -- true
check "a size may have a space before its unit" exits_with 0 flarena run --limit '8 GB' -- true
check "the error for a bad site number says which command lists them" says "flarena who PID lists them" flarena who 1 --holders x
check "the error for a bad time limit of a report gives an example" says "is not a time, such as 30m or 24h" flarena report --fail-on limit:abc x
check "a pid after --holders is refused with a usage that has the pid first" says "Usage: flarena who <PID> [OPTIONS]" flarena who --holders 4242
for line in "trim abc" "trim 0" "stats -- -5" "doctor 1.5" "stats 99999999999"; do
    # shellcheck disable=SC2086  # words of a command line
    check "the error for a bad pid says what to write: $line" refuses "write a process id" 2 $line
done

#----- beside what the library does not load: tests/start has the other cases
runs_without_flarena() { # TEXT OPTION OF ENV... COMMAND...: the command runs, and one line on stderr contains TEXT
    local text=$1 output
    shift
    output=$(without_preload FLARENA_LIB="$LIB" "$@" 2>"$SCRATCH/stderr")
    cat "$SCRATCH/stderr"
    [ "$output" = runs ] && [ "$(wc -l <"$SCRATCH/stderr")" -eq 1 ] && grep -qF -- "$text" "$SCRATCH/stderr"
}

#----- other libraries in LD_PRELOAD
other_date() { # ALLOCATOR
    local faketime=(/usr/lib/*/faketime/libfaketimeMT.so.1)
    [ -e "${faketime[0]}" ] || { install_packages libfaketime && faketime=(/usr/lib/*/faketime/libfaketimeMT.so.1); } ||
        { echo "libfaketime cannot be installed" && exit 77; }
    [ "$(timeout 60 env FAKETIME='@2001-02-03 01:00:00' LD_PRELOAD="${faketime[0]}" FLARENA_LIB="$LIB" "$FLARENA" run --allocator "$1" -- \
        sh -c 'grep -q /libflarena.so /proc/self/maps && date +%Y' 2>&1)" = 2001 ]
}
for mode in glibc jemalloc; do check "$mode: a program starts under libfaketime" other_date $mode; done

#----- sanitizers
sanitized() { # RUNTIME COMPILER OPTION...: a program that is built with the sanitizer
    local runtime=$1
    shift
    printf '#include <stdio.h>\nint main(void) { puts("runs"); return 0; }\n' >"$SCRATCH/sanitized.c"
    if ! "$@" "$SCRATCH/sanitized.c" -o "$SCRATCH/sanitized" || ! "$SCRATCH/sanitized" >/dev/null; then
        echo "no program can be built with $* and run"
        exit 77
    fi
    runs_without_flarena "is built with a sanitizer, whose $runtime" "$FLARENA" run -- "$SCRATCH/sanitized"
}
check "a program built by gcc with -fsanitize=address starts without the library" sanitized "runtime lib" gcc -fsanitize=address
check "a program into which gcc linked the runtime of -fsanitize=address starts without the library" \
    sanitized "linked-in runtime (__asan_init)" gcc -fsanitize=address -static-libasan

#----- programs that get privileges from their file: the loader ignores LD_PRELOAD
privileged() { # another user starts a copy of sh that has root's privileges
    install -m 4755 "$(readlink -f /bin/sh)" "$SCRATCH/privileged"
    install -m 755 "$LIB" "$SCRATCH/libflarena.so"
    local capabilities='grep CapEff /proc/$$/status'
    [ "$(as_nobody "$SCRATCH/privileged" -p -c "$capabilities" || true)" != "$(as_nobody sh -c "$capabilities")" ] ||
        { echo "privileges have no effect here" && exit 77; }
    # `-p`: the shell keeps the privileges.
    FLARENA_LIB=$SCRATCH/libflarena.so as_nobody "$OPEN_FLARENA" run -- "$SCRATCH/privileged" -p -c 'echo $$; read x' \
        <"$SCRATCH/fifo" >"$SCRATCH/pid" 2>"$SCRATCH/said" &
    exec 7>"$SCRATCH/fifo"
    eventually test -s "$SCRATCH/pid"
    flarena doctor "$(cat "$SCRATCH/pid")" >>"$SCRATCH/said" || true
    exec 7>&-
    wait
    cat "$SCRATCH/said"
    [ "$(grep -c "privileged is set-user-id or set-group-id" "$SCRATCH/said")" -eq 2 ]
}
mkfifo "$SCRATCH/fifo"
check_as_nobody "run and doctor report that a set-user-id program ignores the preload" privileged

#----- --dry-run
dead_preload() { without_preload FLARENA_LIB=/nowhere LD_PRELOAD="$LIB" "$FLARENA" run --dry-run 2>/dev/null; }
check_output "without a usable library, an inherited preload of flarena is removed" "unset LD_PRELOAD" dead_preload
dry_run_reads_back() {
    eval "$(flarena run --dry-run --allocator jemalloc --marker-file "$SCRATCH/it's here/%p.jsonl" 2>/dev/null)"
    [ "$FLARENA_MARKER_FILE" = "$SCRATCH/it's here/%p.jsonl" ] && [ "$FLARENA_ALLOCATOR" = jemalloc ]
}
check "a shell can evaluate the output of --dry-run" dry_run_reads_back
prints_no_secret() {
    ! NVFLARE_TOKEN=hush-hush OTHER=hush-hush flarena run --dry-run -- python3 --token hush-hush 2>&1 | grep hush
}
check "--dry-run prints neither arguments nor other variables" prints_no_secret
dry_run_json() {
    flarena run --dry-run --json --limit 8G | python3 -c "
import json, sys
plan = json.load(sys.stdin)
assert plan['set']['FLARENA_MEMORY_LIMIT'] == '8G', plan
assert plan['notes'] == [], plan"
}
check "--dry-run --json is one JSON object" dry_run_json

#----- markers under flarena run
cat >"$SCRATCH/marks.py" <<'END'
import ctypes
import sys

for _ in sys.argv:
    print(ctypes.CDLL(None).flarena_mark(b"step", None, 1))
END
export MARKS=$SCRATCH/marks.py
hints_at_profile() { # TIMES COMMAND...: stderr contains this often the two lines about --profile
    local expected=$1
    shift
    flarena run "$@" >"$SCRATCH/answers" 2>"$SCRATCH/hints"
    cat "$SCRATCH/hints"
    [ "$(grep -c -- --profile "$SCRATCH/hints")" -eq "$expected" ] && [ "$(wc -l <"$SCRATCH/hints")" -eq $((2 * expected)) ]
}
check "a program that writes markers without --profile gets one hint, also without a terminal" \
    hints_at_profile 1 -- python3 "$MARKS" twice
check "a program that a script executes gets the hint, too" hints_at_profile 1 -- sh -c 'exec python3 "$MARKS"'
check "children of the command get no hint" hints_at_profile 0 -- sh -c 'python3 "$MARKS"; python3 "$MARKS"; true'
check "with NVFLARE_CLIENT_MEMORY_PROFILE=0 there is no hint" \
    hints_at_profile 0 --set NVFLARE_CLIENT_MEMORY_PROFILE=0 -- python3 "$MARKS"
cat >"$SCRATCH/streams.py" <<'END'
import os
import sys

open_ones = [fd for fd in range(3) if os.path.exists(f"/proc/self/fd/{fd}")]
with open(sys.argv[1], "w") as file:
    print(open_ones, file=file)
END
same_streams() { # the command has the same closed streams as flarena run
    local closed look="python3 $SCRATCH/streams.py $SCRATCH"
    for closed in '<&-' '2>&-' '>&-' '<&- >&- 2>&-' ''; do
        sh -c "exec $look/plain $closed"
        sh -c "exec \"\$FLARENA\" run -- $look/launched $closed"
        diff "$SCRATCH/plain" "$SCRATCH/launched"
    done
}
check "a command inherits open and closed standard streams unchanged" same_streams
