# shellcheck shell=bash
# Runs commands that print tests, counts these, and tells at the end what failed: sourced by test.sh, soak.sh and
# arm64.sh.

LOG=$(mktemp "${TMPDIR:-/tmp}/flarena-counted.XXXXXX")
trap 'rm -f "$LOG"' EXIT
PASSED=0
FAILED=0
SKIPPED=0
# Each failed test with what was seen of it.
FAILURES=
MAX_REPEATED_LINES=20

count() { # PATTERN: matching lines of the command that just ran
    grep -cE "$1" "$LOG"
}

failures() { # of the command that just ran: the lines that count as such, and the indented ones below them
    awk -v most="$MAX_REPEATED_LINES" '
        /^not ok - |^test .* \.\.\. FAILED$/ { print; left = most; next }
        /^    / && left > 0 { print; left--; next }
        { left = 0 }' "$LOG"
}

# The record of a run may show its end alone.
finish_counted() {
    [ -z "$FAILURES" ] || printf 'What failed:\n%s\n' "$FAILURES"
    printf '%d passed, %d failed, %d skipped\n' "$PASSED" "$FAILED" "$SKIPPED"
    [ "$FAILED" -eq 0 ]
}

run_counted() { # suite|part NAME COMMAND...: its lines shown and counted, its time told
    local what=$1 name=$2 status started=$SECONDS passed failed skipped
    shift 2
    printf '## %s\n' "$name"
    "$@" </dev/null 2>&1 | tee "$LOG"
    status=${PIPESTATUS[0]}
    passed=$(count '^ok - |^test .* \.\.\. ok$')
    failed=$(count '^not ok - |^test .* \.\.\. FAILED$')
    skipped=$(count '^skip - |^test .* \.\.\. ignored')
    # One that dies or says nothing has failed, whatever its lines say.
    if [ "$failed" -eq 0 ] && { [ "$status" -ne 0 ] || [ $((passed + skipped)) -eq 0 ]; }; then
        printf 'not ok - the %s %s runs to its end (exit status %d)\n' "$what" "$name" "$status" | tee -a "$LOG"
        failed=1
    fi
    [ "$failed" -eq 0 ] || FAILURES+="## $name"$'\n'$(failures)$'\n'
    PASSED=$((PASSED + passed))
    FAILED=$((FAILED + failed))
    SKIPPED=$((SKIPPED + skipped))
    printf '## %s: %d passed, %d failed, %d skipped, %d s\n\n' \
        "$name" "$passed" "$failed" "$skipped" $((SECONDS - started))
}
