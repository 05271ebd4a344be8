# shellcheck shell=bash
# Runs commands that print tests, and counts these: sourced by test.sh and soak.sh.

LOG=$(mktemp "${TMPDIR:-/tmp}/flarena-counted.XXXXXX")
trap 'rm -f "$LOG"' EXIT
PASSED=0
FAILED=0
SKIPPED=0

count() { # PATTERN: matching lines of the command that just ran
    grep -cE "$1" "$LOG"
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
        printf 'not ok - the %s %s runs to its end (exit status %d)\n' "$what" "$name" "$status"
        failed=1
    fi
    PASSED=$((PASSED + passed))
    FAILED=$((FAILED + failed))
    SKIPPED=$((SKIPPED + skipped))
    printf '## %s: %d passed, %d failed, %d skipped, %d s\n\n' \
        "$name" "$passed" "$failed" "$skipped" $((SECONDS - started))
}
