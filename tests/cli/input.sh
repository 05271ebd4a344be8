# shellcheck shell=bash
# Wrong command lines, closed and full outputs: no panic, and one clear line. Sourced by run.sh.

never_panics() {
    local status arguments
    while IFS= read -r arguments; do
        status=0
        # shellcheck disable=SC2086  # the words of one command line
        timeout 120 "$FLARENA" $arguments >"$SCRATCH/out" 2>&1 </dev/null || status=$?
        if grep -qE 'panicked|internal error, please report it|RUST_BACKTRACE' "$SCRATCH/out"; then
            echo "flarena $arguments"
            cat "$SCRATCH/out"
            return 1
        fi
        case $status in 0 | 1 | 2 | 3 | 12[567]) ;; *) echo "flarena $arguments: $status"; return 1 ;; esac
    done <<'END'

nonsense
run --
run --set = -- true
run --set NAME -- true
run --set MALLOC_CONF=:,: -- true
run --limit 99999999999999999999G -- true
run --limit -1 -- true
run --marker-file -- true
doctor 0
doctor -1
doctor 99999999999999999999
doctor 1 2
doctor --
doctor -- /
doctor -- ""
doctor 1 -- true
stats
stats 0
trim --all 1
trim 1 x
trim --timeout 0 1
top
top --once --sort nothing
top --once --interval 0
top --once --filter (
END
}
check "no command line causes a panic or an undocumented exit status" never_panics

quiet_pipe() { # ARGUMENT...: a reader that exits early causes no message
    { "$FLARENA" "$@" 2>"$SCRATCH/notes"; } | true || true
    [ ! -s "$SCRATCH/notes" ] || { cat "$SCRATCH/notes"; return 1; }
}
check "a closed pipe ends the command without a message" quiet_pipe completions bash
full_disk() { # ARGUMENT...
    local status=0
    "$FLARENA" "$@" >/dev/full 2>"$SCRATCH/notes" || status=$?
    cat "$SCRATCH/notes"
    [ "$status" -eq 3 ] && [ "$(wc -l <"$SCRATCH/notes")" -eq 1 ]
}
check "a full disk behind stdout causes one line and exit status 3" full_disk man
for arguments in --help --version "run --help" help; do
    # shellcheck disable=SC2086  # words
    check "a full disk behind $arguments causes one line and exit status 3" full_disk $arguments
done
every_stream_closed() { "$FLARENA" doctor >&- 2>&- <&-; [ $? -ne 134 ]; }
check "closed standard streams cause no crash" every_stream_closed

printf 'data\n' >"$SCRATCH/data file"
completed() { # WORD...: the candidates for the last word in bash
    PATH="${FLARENA%/*}:$PATH" bash -c '
        eval "$(flarena completions bash)"
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _flarena "$1" "${@: -1}" "${@: -2:1}"
        printf "%s\n" "${COMPREPLY[@]}"' completed "$@"
}
check_output "bash completes subcommands" $'run\nreport' completed flarena r
check_output "bash completes options" --marker-file completed flarena run --mark
check_output "bash completes the values of options" jemalloc completed flarena run --allocator j
help_has_examples() {
    for name in "" run compare doctor report trim stats top who; do
        "$FLARENA" ${name:+"$name"} --help | grep -q "^Examples:" || { echo "$name"; return 1; }
    done
}
check "the help of each subcommand has examples" help_has_examples

check "the error for a bad --timeout says what to write" refuses "write a number of seconds" 2 trim --timeout x 1
check "the error for trim without a process names PID and --all" refuses "<PID|--all>" 2 trim
check "the error for a missing folder for manual pages gives the reason" \
    refuses "cannot write /nonexistent/x/flarena.1: No such file or directory" 3 man --dir /nonexistent/x
check "the error for a report that cannot be written gives the reason" \
    refuses "cannot write /nonexistent/x.html: No such file or directory" 3 report --html /nonexistent/x.html ../report/run.sh
check "the error for a file that is not executable says so" \
    refuses "cannot start $SCRATCH/data file: it is not executable (chmod +x '$SCRATCH/data file')" 126 run -- "$SCRATCH/data file"
check "the error for a folder instead of a command says so" refuses "cannot start /tmp: it is a directory" 126 run -- /tmp
printf '#!/nowhere/sh\n' >"$SCRATCH/orphan"
chmod +x "$SCRATCH/orphan"
check "the error for a script with a missing interpreter says so" refuses "its interpreter (#! line or loader) was not found" 127 run -- "$SCRATCH/orphan"

# The help has no hand-made line breaks, because a terminal would break those lines again.
helps_at_80() {
    local name
    for name in run compare doctor report trim stats top who man completions; do
        in_terminal 80 "$FLARENA" "$name" --help >"$SCRATCH/help"
        ! grep -nE '.{81}' "$SCRATCH/help" || return 1
        # A wrapped example could not be pasted; its rest would start without two spaces.
        ! sed -n '/^Examples:/,/^$/p' "$SCRATCH/help" | grep -vE '^(Examples:)?$|^  ' || return 1
    done
}
check "at 80 columns no help has a long line or wraps an example" helps_at_80
