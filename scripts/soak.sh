#!/usr/bin/env bash
# Runs what is too long for scripts/test.sh, and ends with `N passed, N failed, N skipped`; exits 1 when any failed.
#
#   scripts/soak.sh                    every part
#   scripts/soak.sh 60 stress          60 minutes of each part that takes any time (10 by default), only these parts
#   scripts/soak.sh --list             the parts, and how long they take on 2 quiet cores
#
# A part prints lines as the suites do, `ok - sentence` and so on.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

# NAME|COMMAND|TIME. The command may read $MINUTES.
# shellcheck disable=SC2016 # bash -c expands it
# shellcheck disable=SC2016  # the part's shell expands it
PARTS=(
    'stress|tests/stress/soak.sh "$MINUTES"|as told'
    'faults|tests/faults/soak.sh "$MINUTES"|as told'
    'foreign-cpython|FOREIGN=whole tests/foreign/run.sh cpython|2 h'
    'foreign-numpy|FOREIGN=whole tests/foreign/run.sh numpy|30 min'
    'foreign-nvflare|FOREIGN=whole tests/foreign/run.sh nvflare|1 h'
    'foreign-stress_ng|FOREIGN=whole tests/foreign/run.sh stress_ng|1 h'
    'foreign-servers|FOREIGN=whole tests/foreign/run.sh redis postgres|1 h'
    'foreign-programs|FOREIGN=whole tests/foreign/run.sh gcc git node sqlite|2 h'
    'stress|tests/stress/soak.sh $MINUTES|any: 1 h is about 10^8 calls'
    'faults|tests/faults/soak.sh $MINUTES|any: 4 h is all of it'
    'properties|PROPTEST_CASES=100000 cargo test --workspace -- any_ keep_their_contents refusals_of|2 h'
)

list_parts() {
    local part name command time
    for part in "${PARTS[@]}"; do
        IFS='|' read -r name command time <<<"$part"
        printf '%-20s %-8s %s\n' "$name" "$time" "$command"
    done
}

part_named() { # NAME: its row
    local part
    for part in "${PARTS[@]}"; do
        [ "${part%%|*}" != "$1" ] || { echo "$part"; return; }
    done
    return 1
}

run_part() { # NAME COMMAND
    local status started=$SECONDS passed failed skipped
    printf '## %s\n' "$1"
    bash -c "$2" </dev/null 2>&1 | tee "$LOG"
    status=${PIPESTATUS[0]}
    passed=$(grep -c '^ok - ' "$LOG")
    failed=$(grep -c '^not ok - ' "$LOG")
    skipped=$(grep -c '^skip - ' "$LOG")
    # A part that dies or says nothing has failed, whatever its lines say.
    if [ "$failed" -eq 0 ] && { [ "$status" -ne 0 ] || [ $((passed + skipped)) -eq 0 ]; }; then
        printf 'not ok - the part %s runs to its end (exit status %d)\n' "$1" "$status"
        failed=1
    fi
    PASSED=$((PASSED + passed))
    FAILED=$((FAILED + failed))
    SKIPPED=$((SKIPPED + skipped))
    printf '## %s: %d passed, %d failed, %d skipped, %d s\n\n' "$1" "$passed" "$failed" "$skipped" $((SECONDS - started))
}

if [ "${1-}" = --list ]; then
    list_parts
    exit
fi
export MINUTES=10
if [[ ${1-} =~ ^[0-9]+$ ]]; then
    MINUTES=$1
    shift
fi
[ $# -gt 0 ] || mapfile -t names < <(printf '%s\n' "${PARTS[@]%%|*}")
[ $# -eq 0 ] || names=("$@")
for name in "${names[@]}"; do
    part_named "$name" >/dev/null || { printf 'no such part: %s; there are:\n' "$name"; list_parts; exit 1; }
done
cargo build --release || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }
LOG=$(mktemp "${TMPDIR:-/tmp}/flarena-soak-log.XXXXXX")
trap 'rm -f "$LOG"' EXIT
PASSED=0 FAILED=0 SKIPPED=0
for name in "${names[@]}"; do
    IFS='|' read -r _ command _ < <(part_named "$name")
    run_part "$name" "$command"
done
printf '%d passed, %d failed, %d skipped\n' "$PASSED" "$FAILED" "$SKIPPED"
[ "$FAILED" -eq 0 ]
