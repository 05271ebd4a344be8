#!/usr/bin/env bash
# docs/recipes with the real packages: the library is in the workers of Dask, Ray and torch's DataLoader, and
# their memory is back when they wait; the stages of Flower's clients are marked.
# Files that the pages show are given to their readers.
#
#   RECIPES=whole tests/recipes/run.sh     under both allocators, and Flower simulations, gunicorn, Celery: scripts/soak.sh recipes
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

HERE=$ROOT/tests/recipes
LIMIT_S=150
# After its tasks a worker may hold this much more than before: what they keep, and code that they loaded. With glibc
# alone it is 64 and more.
MAY_KEEP_MB=24
modes=(glibc)
[ "${RECIPES-}" != whole ] || modes=(glibc jemalloc)
export PYTHONDONTWRITEBYTECODE=1 RAY_USAGE_STATS_ENABLED=0 RAY_AUTH_MODE=disabled FLWR_TELEMETRY_ENABLED=0

# A framework that goes wrong leaves processes behind. Ray's name their folder, which is ours.
trap 'kill_leftovers; rm -rf "$SCRATCH"' EXIT

venv() { # NAME REQUIREMENT...: sets PYTHON, or says why not
    if PYTHON=$("$ROOT/scripts/venv.sh" "$@" 2>"$SCRATCH/venv.log")/bin/python; then return; fi
    echo "${1%-*} cannot be had: $(tail -n 1 "$SCRATCH/venv.log")"
    return 77
}

launched() { # MODE OPTION... -- COMMAND...: as the pages say
    without_preload timeout --kill-after=5 $LIMIT_S env HOME="$SCRATCH" RAY_TMPDIR="$SCRATCH" FLARENA_LIB="$LIB" \
        "$ROOT/target/release/flarena" run --allocator "$@"
}

table_is_good() { # MAY_KEEP_MB: so it is in both workers
    grep -A 2 ' library ' "$SCRATCH/table"
    awk -v may_keep="$1" '$1 == "worker" && $3 == "yes" && $6 <= $4 + may_keep { good++ } END { exit good != 2 }' \
        "$SCRATCH/table"
}
memory_is_back() { # MODE PROGRAM [ARGUMENT...]
    launched "$1" -- "$PYTHON" "$HERE/$2" "${@:3}" >"$SCRATCH/table" 2>"$SCRATCH/log" ||
        { tail -n 20 "$SCRATCH/log"; return 1; }
    table_is_good $MAY_KEEP_MB
}

dask() {
    venv dask-2026.8.0 dask==2026.8.0 distributed==2026.8.0 numpy
    memory_is_back "$1" dask_tasks.py
}
flower_venv() { venv flwr-1.41.0 'flwr[simulation]==1.41.0'; } # brings the Ray that it wants
ray() {
    flower_venv
    memory_is_back "$1" ray_tasks.py
}
gunicorn() {
    venv gunicorn-27.0.1 gunicorn==27.0.1 numpy
    memory_is_back "$1" gunicorn_requests.py "$SCRATCH"
    rm -f "$SCRATCH/gunicorn.sock"
}
celery() {
    venv celery-5.7.0 celery==5.7.0 numpy
    memory_is_back "$1" celery_tasks.py "$SCRATCH"
    rm -rf "$SCRATCH/celery"
}
has_torch() {
    PYTHON=/usr/bin/python3
    $PYTHON -c 'import torch' 2>/dev/null || { echo "$PYTHON has no torch: apt-get install python3-torch"; return 77; }
}
loader() {
    has_torch
    memory_is_back "$1" torch_loader.py
}

flower_client() {
    flower_venv
    launched glibc --marker-file "$SCRATCH/client.jsonl" -- "$PYTHON" "$HERE/flower_client.py" 2>/dev/null
}
simulation() { # MODE
    flower_venv
    launched "$1" --marker-file "$SCRATCH/simulation.jsonl" -- "$PYTHON" "$HERE/flower_simulation.py" 2 \
        >"$SCRATCH/table" 2>"$SCRATCH/log" || { tail -n 20 "$SCRATCH/log"; return 1; }
    # Without flarena it is 100 more; the code of Flower's that a round loads is in this.
    table_is_good 48
    for stage in before_train after_train before_evaluate after_evaluate; do
        for site in client-0 client-1; do
            [ "$(grep -c "\"site\":\"$site\",.*\"stage\":\"$stage\"" "$SCRATCH/simulation.jsonl")" -eq 2 ]
        done
    done
    rm "$SCRATCH/simulation.jsonl"
}

# shellcheck source=tests/recipes/shown.sh
. "$HERE/shown.sh"
for mode in "${modes[@]}"; do
    check "Dask, $mode: the library is in the workers, and their memory is back after the tasks" dask "$mode"
    check "Ray, $mode: the library is in the actors, and their memory is back after the tasks" ray "$mode"
    check "DataLoader, $mode: the library is in the workers, and their memory is back after the epoch" loader "$mode"
done
check_output "Flower: a client's stages are marked with site and round, whichever form it has" "\
None None load
client-1 3 before_train
client-1 3 after_train
client-1 3 before_evaluate
client-1 3 after_evaluate
node-77 4 before_train
node-77 4 after_train" flower_client
if [ "${RECIPES-}" = whole ]; then
    for mode in "${modes[@]}"; do
        check "Flower, $mode: a simulation marks each stage, and its workers' memory is back after the rounds" simulation "$mode"
        check "gunicorn, $mode: the library is in the workers, and their memory is back after the requests" gunicorn "$mode"
        check "Celery, $mode: the library is in the workers, and their memory is back after the tasks" celery "$mode"
    done
fi
finish
