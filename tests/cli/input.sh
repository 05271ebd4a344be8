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
