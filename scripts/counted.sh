# shellcheck shell=bash
# Runs commands that print test results, counts the results, and lists the failures at the end.
# Sourced by test.sh, soak.sh and arm64.sh.

LOG=$(mktemp "${TMPDIR:-/tmp}/flarena-counted.XXXXXX")
trap 'rm -f "$LOG"' EXIT
PASSED=0
FAILED=0
SKIPPED=0
# The failed tests, each with the first lines of its output.
FAILURES=
MAX_REPEATED_LINES=20
# The caller may name a file that gets a line for each command: its name and its seconds.
TIMES=${TIMES:-/dev/null}

count() { # PATTERN: matching lines of $LOG
    grep -cE "$1" "$LOG"
}

failures() { # the lines of $LOG that report a failure, and the indented lines below each
    awk -v most="$MAX_REPEATED_LINES" '
        /^not ok - |^test .* \.\.\. FAILED$/ { print; left = most; next }
        /^    / && left > 0 { print; left--; next }
        { left = 0 }' "$LOG"
}

count_results() { # suite|part NAME STATUS SECONDS: of the command whose output is in $LOG
    local kind=$1 name=$2 status=$3 seconds=$4 passed failed skipped
    passed=$(count '^ok - |^test .* \.\.\. ok$')
    failed=$(count '^not ok - |^test .* \.\.\. FAILED$')
    skipped=$(count '^skip - |^test .* \.\.\. ignored')
    # A command that crashes, or prints no result, has failed.
    if [ "$failed" -eq 0 ] && { [ "$status" -ne 0 ] || [ $((passed + skipped)) -eq 0 ]; }; then
        printf 'not ok - the %s %s runs to its end (exit status %d)\n' "$kind" "$name" "$status" | tee -a "$LOG"
        failed=1
    fi
    [ "$failed" -eq 0 ] || FAILURES+="## $name"$'\n'$(failures)$'\n'
    PASSED=$((PASSED + passed))
    FAILED=$((FAILED + failed))
    SKIPPED=$((SKIPPED + skipped))
    printf '%-20s %5d\n' "$name" "$seconds" >>"$TIMES"
    printf '## %s: %d passed, %d failed, %d skipped, %d s\n\n' "$name" "$passed" "$failed" "$skipped" "$seconds"
}

run_counted() { # suite|part NAME COMMAND...: shows its output and counts it
    local kind=$1 name=$2 status started=$SECONDS
    shift 2
    printf '## %s\n' "$name"
    "$@" </dev/null 2>&1 | tee "$LOG"
    status=${PIPESTATUS[0]}
    count_results "$kind" "$name" "$status" $((SECONDS - started))
}

# A log of the run may keep only its last lines: the failures are repeated here.
finish_counted() {
    [ -z "$FAILURES" ] || printf 'Failures:\n%s\n' "$FAILURES"
    printf '%d passed, %d failed, %d skipped\n' "$PASSED" "$FAILED" "$SKIPPED"
    [ "$FAILED" -eq 0 ]
}
