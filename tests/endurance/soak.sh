#!/usr/bin/env bash
# Processes do not grow in 200 small rounds of the quickstart's job, nor in MINUTES of the stress program. Compared are
# memory, threads, descriptors and mappings of each process in the second and the last fifth of the run.
#
#   tests/endurance/soak.sh MINUTES     ENDURANCE_ROUNDS=200
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"

minutes=${1:?MINUTES}
rounds=${ENDURANCE_ROUNDS:-200}
export COMMAND_TIMEOUT=

watch() { # NAME LIMIT_S COMMAND...: writes samples to build/endurance/NAME
    local folder=$ROOT/build/endurance/$1
    rm -rf "$folder"
    mkdir -p "$folder"
    without_preload python3 "$ROOT/tests/endurance/watch.py" "$folder" "$2" "${@:3}" >"$folder/verdict" 2>&1 ||
        { cat "$folder/verdict"; tail -n 5 "$folder/log"; return 1; }
    cat "$folder/verdict" >&3
}

job() { # ALLOCATOR: two sites with a trainer each, a model of 4 MB
    local markers=$ROOT/build/endurance/markers-$1.jsonl python
    python=$("$ROOT/scripts/venv.sh" 2.9.0)/bin/python
    rm -f "$markers"
    watch "job-$1" $((rounds * 15 + 300)) "$ROOT/target/release/flarena" run --allocator "$1" --marker-file "$markers" -- \
        "$python" "$ROOT/scripts/quickstart/job.py" 4 "$rounds" "$ROOT/build/endurance/job-$1"
    "$ROOT/target/release/flarena" report "$markers" >"$ROOT/build/endurance/report-$1.txt" || { cat "$ROOT/build/endurance/report-$1.txt"; return 1; }
    sed '/^$/q' "$ROOT/build/endurance/report-$1.txt" >&3
}

stress() { # MODE
    watch "stress-$1" $((minutes * 60 + 900)) env LD_PRELOAD="$LIB" TEST_MODE="$1" FLARENA_ALLOCATOR="$1" NVFLARE_CLIENT_MEMORY_PROFILE=0 "$SCRATCH/stress" --seconds=$((minutes * 60))
}

# The figures are printed for passed tests too.
exec 3>&1
mkdir -p "$ROOT/build/endurance"
build_stress "$SCRATCH/stress" || exit 1
for mode in "${MODES[@]}"; do
    check "$mode: $rounds rounds of a job leave every process at its size" job "$mode"
    check "$mode: $minutes minutes of the stress program leave it at its size" stress "$mode"
done
finish
