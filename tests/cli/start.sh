# shellcheck shell=bash
# flarena run: the command starts, with the library if possible. Sourced by run.sh.
# shellcheck disable=SC2016  # inner shells expand

maps_library() { sh -c "grep -q '/libflarena[.]so' /proc/self/maps && echo mapped"; }
export -f maps_library

#----- the environment of the command
check_output "a command runs with the library" mapped flarena run -- bash -c maps_library
check_output "options after the command belong to the command" "--help -- --set" \
    flarena run sh -c 'echo "$@"' sh --help -- --set
check_output "arguments reach the command unchanged" "3[a  b][][line
end]" flarena run -- sh -c 'printf %s $#; printf "[%s]" "$@"' sh "a  b" "" "line
end"
check_output "standard input reaches the command" "through" sh -c 'echo through | "$FLARENA" run -- cat'
check_output "--allocator sets FLARENA_ALLOCATOR" jemalloc \
    flarena run --allocator jemalloc -- sh -c 'echo $FLARENA_ALLOCATOR'
active_allocator() {
    flarena run "$@" -- python3 -c "
import ctypes
name = ctypes.CDLL(None).flarena_allocator
name.restype = ctypes.c_char_p
print(name().decode())"
}
check_output "with --allocator jemalloc, jemalloc serves the process" jemalloc active_allocator --allocator jemalloc
check_output "without --allocator, glibc serves the process" glibc active_allocator
check_output "a command with closed standard streams starts" "" \
    sh -c '"$FLARENA" run -- true >&- 2>&- <&-'

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
check "the exit status is that of the command" exits_with 7 flarena run -- sh -c 'exit 7'
check "a missing command exits with 127" exits_with 127 flarena run -- no-such-command-here
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
check "top sorts by memory" exits_with 0 flarena top --once --sort memory
names_the_library() { flarena run "$@" -- true 2>&1 | grep -cx "flarena: preloading $LIB"; }
check_output "with --verbose run names the library" 1 names_the_library --verbose
check "run --help lists the usual settings, --help-all all" eval \
    '! flarena run --help | grep FLARENA_DECAY_MS && flarena run --help | grep FLARENA_MARKER_FILE && flarena run --help-all | grep FLARENA_DECAY_MS'
check_output "a system error is printed without its number" "flarena: cannot start /no/such: No such file or directory" \
    sh -c '"$FLARENA" run -- /no/such 2>&1; true'
check "the error for a misspelt setting suggests the nearest" \
    says "did you mean FLARENA_DECAY_MS?" flarena run --set FLARENA_DECAY=1 -- true

names_the_misspelt() { # COMMAND...: one line names the misspelt variable, and no other
    local said
    said=$(without_preload FLARENA_ALOCATOR=jemalloc FLARENA_DECAY_MS=300 FLARENA_LIB="$LIB" "$FLARENA" "$@" 2>&1 || true)
    printf '%s\n' "$said"
    [ "$(grep -c 'there is no setting' <<<"$said")" -eq 1 ]
    grep -q 'there is no setting FLARENA_ALOCATOR; did you mean FLARENA_ALLOCATOR?' <<<"$said"
}
check "run names a misspelt variable and the nearest setting" names_the_misspelt run -- true
check "the doctor names a misspelt variable and the nearest setting" names_the_misspelt doctor
refuses_with_advice() { # TEXT ARGUMENT...
    says "$1" flarena "${@:2}" && exits_with 2 flarena "${@:2}"
}
check "the error for a bad pid says what to write" refuses_with_advice "write a process id" trim abc
for line in "trim 0" "stats -- -5" "doctor 1.5" "stats 99999999999"; do
    # shellcheck disable=SC2086  # words of a command line
    check "the error for a bad pid says what to write: $line" refuses_with_advice "write a process id" $line
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
cat >"$SCRATCH/refuses.c" <<'END'
// Ends a process in which flarena is loaded, before flarena's constructor runs.
#include <dlfcn.h>
#include <unistd.h>
__attribute__((constructor)) static void load(void) {
    if (dlsym(RTLD_DEFAULT, "flarena_version") != NULL) _exit(3);
}
END
gcc -shared -fPIC -D_GNU_SOURCE "$SCRATCH/refuses.c" -o "$SCRATCH/refuses.so" -ldl
check "beside a preload with which the library does not start, the command starts without it" \
    runs_without_flarena "does not start together with $SCRATCH/refuses.so" \
    LD_PRELOAD="$SCRATCH/refuses.so" "$FLARENA" run -- echo runs
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
for kind in address thread; do
    check "a program built by gcc with -fsanitize=$kind starts without the library" sanitized "runtime lib" gcc -fsanitize=$kind
    check "a program into which gcc linked the runtime of -fsanitize=$kind starts without the library" \
        sanitized "linked-in runtime (__${kind:0:1}san_init)" gcc -fsanitize=$kind -static-lib${kind:0:1}san
    # clang links the runtime into the program by default.
    check "a program built by clang with -fsanitize=$kind starts without the library" \
        sanitized "linked-in runtime (__${kind:0:1}san_init)" clang -s -fsanitize=$kind
done

#----- programs that get privileges from their file: the loader ignores LD_PRELOAD
with_privileges() { # TEXT COMMAND...: prepares a copy of sh; another user starts it
    local text=$1
    shift
    rm -f "$SCRATCH/privileged" "$SCRATCH/pid"
    cp "$(readlink -f /bin/sh)" "$SCRATCH/privileged"
    "$@" "$SCRATCH/privileged" || { echo "$1 failed" && exit 77; }
    install -m 755 "$LIB" "$SCRATCH/libflarena.so"
    as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups -- "$@"; }
    local capabilities='grep CapEff /proc/$$/status'
    [ "$(as_nobody "$SCRATCH/privileged" -p -c "$capabilities" || true)" != "$(as_nobody sh -c "$capabilities")" ] ||
        { echo "privileges have no effect here" && exit 77; }
    # `-p`: the shell keeps the privileges.
    FLARENA_LIB=$SCRATCH/libflarena.so as_nobody "$OPEN_FLARENA" run -- "$SCRATCH/privileged" -p -c 'echo $$; read x' \
        <"$SCRATCH/fifo" >"$SCRATCH/pid" 2>"$SCRATCH/said" &
    exec 7>"$SCRATCH/fifo"
    local i
    for ((i = 0; i < 600; i++)); do [ ! -s "$SCRATCH/pid" ] || break; sleep 0.1; done
    flarena doctor "$(cat "$SCRATCH/pid")" >>"$SCRATCH/said" || true
    exec 7>&-
    wait
    cat "$SCRATCH/said"
    [ "$(grep -c "privileged $text" "$SCRATCH/said")" -eq 2 ]
}
mkfifo "$SCRATCH/fifo"
check_as_nobody "run and doctor report that a set-user-id program ignores the preload" \
    with_privileges "is set-user-id or set-group-id" chmod 4755
if need setcap libcap2-bin; then
    check_as_nobody "run and doctor report that a program with file capabilities ignores the preload" \
        with_privileges "has file capabilities" setcap cap_net_raw+ep
else
    skip "run and doctor report that a program with file capabilities ignores the preload" "no libcap2-bin"
fi

#----- a path that LD_PRELOAD cannot contain
mkdir -p "$SCRATCH/a dir"
cp "$LIB" "$SCRATCH/a dir/libflarena.so"
awkward() { without_preload FLARENA_LIB="$SCRATCH/a dir/libflarena.so" "$FLARENA" run -- echo started; }
check "a library in a path with a space is refused, with the reason" says "LD_PRELOAD cannot contain a path with a space" awkward
check_output "and the program starts without it" started eval 'awkward 2>/dev/null'

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
for mode in glibc jemalloc; do
    check_output "$mode: flarena_mark returns -1 in a program without stderr" -1 \
        sh -c '"$FLARENA" run --profile --allocator '$mode' -- python3 "$MARKS" 2>&-'
done
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
