# shellcheck shell=bash
# Wrong command lines, closed and full outputs: no panic, a clear line. Sourced by run.sh.

never_panics() {
    local status arguments
    while IFS= read -r arguments; do
        status=0
        # shellcheck disable=SC2086  # the words of one command line
        timeout 20 "$FLARENA" $arguments >"$SCRATCH/out" 2>&1 </dev/null || status=$?
        if grep -qE 'panicked|internal error|RUST_BACKTRACE' "$SCRATCH/out"; then
            echo "flarena $arguments"
            cat "$SCRATCH/out"
            return 1
        fi
        case $status in 0 | 1 | 2 | 3 | 12[567]) ;; *) echo "flarena $arguments: $status"; return 1 ;; esac
    done <<'END'

nonsense
--version
run
run --
run -- /
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
stats 1 --watch=0
stats 1 --watch=1e309
trim
trim --all 1
trim 1 x
trim --timeout 0 1
trim --timeout x 1
top
top --once --sort nothing
top --once --interval 0
top --once --filter (
completions
completions tcsh
man --dir /nowhere
report
report /nowhere
END
}
check "no command line makes it panic or end in an unknown way" never_panics

quiet_pipe() { # ARGUMENT...: a reader that leaves early is no error to talk about
    { "$FLARENA" "$@" 2>"$SCRATCH/notes"; } | true || true
    [ ! -s "$SCRATCH/notes" ] || { cat "$SCRATCH/notes"; return 1; }
}
check "a closed pipe ends it in silence" quiet_pipe completions bash
full_disk() {
    local status=0
    "$FLARENA" man >/dev/full 2>"$SCRATCH/notes" || status=$?
    cat "$SCRATCH/notes"
    [ "$status" -eq 3 ] && [ "$(wc -l <"$SCRATCH/notes")" -eq 1 ]
}
check "a full disk behind stdout is one line and exit status 3" full_disk
every_stream_closed() { "$FLARENA" doctor >&- 2>&- <&-; [ $? -ne 134 ]; }
check "closed standard streams do not crash it" every_stream_closed

completes() {
    "$FLARENA" completions bash >"$SCRATCH/completions"
    bash -n "$SCRATCH/completions" && grep -q doctor "$SCRATCH/completions"
}
check "the completions are sound bash" completes
has_pages() {
    mkdir -p "$SCRATCH/man"
    "$FLARENA" man --dir "$SCRATCH/man"
    for name in flarena flarena-run flarena-doctor flarena-report flarena-trim flarena-stats flarena-top flarena-who; do
        [ -s "$SCRATCH/man/$name.1" ] || return 1
    done
}
check "there is a manual page for each subcommand" has_pages
help_has_examples() {
    for name in run doctor trim stats top who; do
        "$FLARENA" "$name" --help | grep -q "^Examples:" || { echo "$name"; return 1; }
    done
}
check "the help of each subcommand gives examples" help_has_examples

# Each bad line says what to write or what is wrong, and no number of the system's.
refuses() { # TEXT STATUS ARGUMENT...
    local text=$1 expected=$2 status=0
    shift 2
    "$FLARENA" "$@" >"$SCRATCH/refusal" 2>&1 || status=$?
    cat "$SCRATCH/refusal"
    grep -qF -- "$text" "$SCRATCH/refusal" && ! grep "os error" "$SCRATCH/refusal" && [ "$status" -eq "$expected" ]
}
check "a patience that is no number is told what to write" refuses "write a number of seconds" 2 trim --timeout x 1
check "trim without a process says that it takes pids or --all" refuses "<PID|--all>" 2 trim
check "a folder for manual pages that is not there has the system's reason without a number" \
    refuses "cannot write to /nonexistent/x: No such file or directory" 3 man --dir /nonexistent/x
check "a report that cannot be written, too" \
    refuses "cannot write /nonexistent/x.html: No such file or directory" 3 report --html /nonexistent/x.html ../report/run.sh
printf 'data\n' >"$SCRATCH/data file"
check "a file that is not executable is called so" \
    refuses "cannot start $SCRATCH/data file: it is not executable (chmod +x '$SCRATCH/data file')" 126 run -- "$SCRATCH/data file"
check "a folder for a command is called so" refuses "cannot start /tmp: it is a directory" 126 run -- /tmp
printf '#!/nowhere/sh\n' >"$SCRATCH/orphan"
chmod +x "$SCRATCH/orphan"
check "a script without its interpreter is told so" refuses "the interpreter that it names was not found" 127 run -- "$SCRATCH/orphan"

# A line of help that is broken by hand is broken again by a terminal.
helps_at_80() {
    local name
    for name in run doctor report trim stats top who man completions; do
        in_terminal 80 "$FLARENA" "$name" --help >"$SCRATCH/help"
        ! grep -nE '.{81}' "$SCRATCH/help" || return 1
        # An example that breaks cannot be pasted; words that follow one start a line without two spaces.
        ! sed -n '/^Examples:/,/^$/p' "$SCRATCH/help" | grep -vE '^(Examples:)?$|^  ' || return 1
        # Each line but the last of the statuses is as full as it can be.
        sed -n '/^Exit status: /,/^$/p' "$SCRATCH/help" | awk -v name="$name" '
            NR > 1 && length(last) + 1 + length($1) <= 80 { print name ": " last; bad = 1 } { last = $0 } END { exit bad }' || return 1
    done
}
check "at 80 columns no help breaks an example, or a line twice" helps_at_80

wraps_at_80() {
    in_terminal 80 "$FLARENA" stats $$ >"$SCRATCH/told" || true
    in_terminal 40 "$FLARENA" run -- "$SCRATCH/data file" >>"$SCRATCH/told" || true
    cat "$SCRATCH/told"
    ! grep -E '.{81}' "$SCRATCH/told" && grep -q '^         ' "$SCRATCH/told"
}
check "a long message is wrapped in a terminal" wraps_at_80
one_line() { [ "$("$FLARENA" run -- "$SCRATCH/data file" 2>&1 | wc -l)" -eq 1 ]; }
check "a long message is one line elsewhere" one_line
