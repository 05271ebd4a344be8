#!/usr/bin/env bash
# Workers of other people's frameworks: the PSS of all processes is at most 5 % above that without the library, and at
# most 10 % with markers.
cd "$(dirname "$0")" || exit 1
# shellcheck source=tests/lib.sh
. ../lib.sh

FLARENA=${FLARENA_TEST_COMMAND:-$ROOT/target/release/flarena}
export SCRATCH PYTHONDONTWRITEBYTECODE=1

pss() { # PROGRAM [LAUNCHER...]: gunicorn's client starts the server itself
    if [ "$1" = gunicorn_app ]; then
        without_preload FLARENA_LIB="$LIB" "$PYTHON" "workers/$1.py" "${@:2}"
    else
        without_preload FLARENA_LIB="$LIB" "${@:2}" "$PYTHON" "workers/$1.py"
    fi 2>"$SCRATCH/stderr" | tail -n 1
}

at_most() { # PERCENT PROGRAM MODE: above the PSS without the library
    local bare with
    bare=$(pss "$2" env)
    with=$(PYTHONPATH=$ROOT/src/python pss "$2" "$FLARENA" run --allocator "$3" --)
    printf 'without the library %s MB, with it %s MB\n' "$bare" "$with"
    tail -n 3 "$SCRATCH/stderr"
    [ "$bare" -gt 50 ] && [ "$((with * 100))" -le "$((bare * (100 + $1)))" ]
}

with_markers() {
    export MARKS=1 NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_MARKER_FILE=$SCRATCH/markers
    at_most 10 "$@"
}

workers_of() { # NAME PROGRAM REQUIREMENT...
    local mode
    if ! PYTHON=$("$ROOT/scripts/venv.sh" "${@:3}" 2>"$SCRATCH/venv.log")/bin/python; then
        skip "workers of $1 share memory" "$3 cannot be installed"
        return
    fi
    for mode in glibc jemalloc; do
        check "$mode: processes of $1 have at most 5 % more PSS than without the library" at_most 5 "$2" "$mode"
        check "$mode: processes of $1 have at most 10 % more PSS with markers" with_markers "$2" "$mode"
    done
}

workers_of "gunicorn --preload" gunicorn_app gunicorn gunicorn==27.0.1
workers_of "PyTorch's DataLoader" dataloader torch torch
workers_of Ray ray_actors ray ray==2.55.1
workers_of "Flower's simulation" flower_simulation flwr-1.42.0 'flwr[simulation]==1.42.0'
finish
