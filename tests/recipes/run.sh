#!/usr/bin/env bash
# Runs docs/recipes with the real packages. The workers of Dask, Ray and torch's DataLoader load the library and give
# memory back when they wait; the stages of Flower and OpenFL are marked; the files on the pages are valid.
#
#   RECIPES=whole tests/recipes/run.sh     both allocators, and Flower simulations, gunicorn, Celery (scripts/soak.sh recipes)
#   tests/recipes/run.sh --prepare         downloads the packages
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

HERE=$ROOT/tests/recipes
JOB_SECONDS=600
# A worker may hold this much more after its tasks: the objects that tasks keep, and loaded code. With glibc alone it
# holds 64 MB more.
MAY_KEEP_MB=24
modes=(glibc)
[ "${RECIPES-}" != whole ] || modes=(glibc jemalloc)
JOB=$SCRATCH/job
export PYTHONDONTWRITEBYTECODE=1 RAY_USAGE_STATS_ENABLED=0 RAY_AUTH_MODE=disabled FLWR_TELEMETRY_ENABLED=0

trap 'kill_leftovers; rm -rf "$SCRATCH"' EXIT

venv() { # NAME REQUIREMENT...: sets PYTHON, or prints why it cannot
    if PYTHON=$("$ROOT/scripts/venv.sh" "$@" 2>"$SCRATCH/venv.log")/bin/python; then return; fi
    echo "${1%-*} cannot be installed: $(tail -n 1 "$SCRATCH/venv.log")"
    return 77
}

# HOME shows which processes belong to the job.
launched() { # MODE OPTION... -- COMMAND...: with `flarena run`, as on the pages
    mkdir -p "$JOB"
    without_preload HOME="$JOB" RAY_TMPDIR="$JOB" FLARENA_LIB="$LIB" "$ROOT/target/release/flarena" run --allocator "$@"
}

limited() { # NAME COMMAND...: ends it after JOB_SECONDS, and prints its output when it fails
    local status=0
    run_limited "recipes-$1" $JOB_SECONDS "$JOB" "${@:2}" >"$JOB/output" 2>"$JOB/log" || status=$?
    case $status in
        0) return ;;
        "$STATUS_AT_LIMIT") show_hang "recipes-$1" ;;
        *) tail -n 20 "$JOB/log" ;;
    esac
    return "$status"
}

table_is_good() { # MAY_KEEP_MB: of both workers
    grep -A 2 ' library ' "$JOB/output"
    awk -v may_keep="$1" '$1 == "worker" && $3 == "yes" && $6 <= $4 + may_keep { good++ } END { exit good != 2 }' \
        "$JOB/output"
}
memory_is_back() { # MODE VENV PROGRAM
    "$2"
    mkdir -p "$SCRATCH/$3-$1"
    limited "$3-$1" launched "$1" -- "$PYTHON" "$HERE/$3.py" "$SCRATCH/$3-$1"
    table_is_good $MAY_KEEP_MB
}
stages() { # VENV PROGRAM: prints site, round and stage of its markers. On a slow machine the governor adds periodic ones.
    "$1"
    limited "$2" launched glibc --marker-file "$SCRATCH/$2.jsonl" -- "$PYTHON" "$HERE/$2.py"
    sed -E '/"stage":"(periodic|exit)"/d; s/.*"site":"?([^",]*)"?,"round":([^,]*),"stage":"([^"]*)".*/\1 \2 \3/' "$SCRATCH/$2.jsonl"
}

celery_venv() { venv celery-5.7.0 celery==5.7.0 numpy; }
dask_venv() { venv dask-2026.8.0 dask==2026.8.0 distributed==2026.8.0 numpy; }
flower_venv() { venv flwr-1.41.0 'flwr[simulation]==1.41.0'; } # it depends on Ray
gunicorn_venv() { venv gunicorn-27.0.1 gunicorn==27.0.1 numpy; }
kubernetes_venv() { venv kubernetes-validate kubernetes-validate; }
openfl_venv() { venv openfl-1.9 openfl==1.9 pip; } # it imports pip
has_torch() {
    PYTHON=/usr/bin/python3
    $PYTHON -c 'import torch' 2>/dev/null || { echo "$PYTHON has no torch: apt-get install python3-torch"; return 77; }
}

rounds_of_server() { # prints the markers of one ServerApp with two rounds
    printf 'server %s\n' {1,2}\ {round_started,before_aggregation,after_aggregation}
}
simulation() { # MODE
    flower_venv
    limited "flower-simulation-$1" launched "$1" --marker-file "$SCRATCH/simulation.jsonl" -- "$PYTHON" "$HERE/flower_simulation.py" 2
    # A round loads some of Flower's code. Without flarena a worker holds 100 MB more.
    table_is_good 48
    for stage in before_train after_train before_evaluate after_evaluate; do
        for site in client-0 client-1; do
            [ "$(grep -c "\"site\":\"$site\",.*\"stage\":\"$stage\"" "$SCRATCH/simulation.jsonl")" -eq 2 ]
        done
    done
    rm "$SCRATCH/simulation.jsonl"
}

if [ "${1-}" = --prepare ]; then
    for name in dask flower openfl kubernetes; do "${name}_venv"; done
    exit
fi
mkdir "$JOB"
# shellcheck source=tests/recipes/shown.sh
. "$HERE/shown.sh"
for mode in "${modes[@]}"; do
    check "Dask, $mode: the workers load the library, and give memory back after the tasks" \
        memory_is_back "$mode" dask_venv dask_tasks
    check "Ray, $mode: the actors load the library, and give memory back after the tasks" \
        memory_is_back "$mode" flower_venv ray_tasks
    check "DataLoader, $mode: the workers load the library, and give memory back after the epoch" \
        memory_is_back "$mode" has_torch torch_loader
done
check_output "Flower: the stages of both forms of a client are marked with site and round" "\
null null load
client-1 3 before_train
client-1 3 after_train
client-1 3 before_evaluate
client-1 3 after_evaluate
node-77 4 before_train
node-77 4 after_train" stages flower_venv flower_client
check_output "Flower: the rounds of both forms of a ServerApp are marked, also by a strategy's own method" \
    "null null load"$'\n'"$(rounds_of_server)"$'\n'"$(rounds_of_server)" stages flower_venv flower_server
check_output "OpenFL: the tasks and rounds of a collaborator and the rounds of an aggregator are marked" "\
null null load
one 0 before_task
one 0 after_task
one 0 after_send_result
one 1 before_task
one 1 after_task
one 1 after_send_result
aggregator 0 round_started
aggregator 0 after_aggregation" stages openfl_venv openfl_callbacks
if [ "${RECIPES-}" = whole ]; then
    for mode in "${modes[@]}"; do
        check "Flower, $mode: a simulation marks each stage, and its workers give memory back after the rounds" simulation "$mode"
        check "gunicorn, $mode: the workers load the library, and give memory back after the requests" \
            memory_is_back "$mode" gunicorn_venv gunicorn_requests
        check "Celery, $mode: the workers load the library, and give memory back after the tasks" \
            memory_is_back "$mode" celery_venv celery_tasks
    done
fi
finish
