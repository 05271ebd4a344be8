#!/usr/bin/env bash
# Memory that other libraries allocate beside malloc: limited at the start, released at a trim and when idle, and reported
# in markers.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

HERE=$ROOT/tests/pools
COMMAND=${FLARENA_TEST_COMMAND:-$ROOT/target/release/flarena}
export COMMAND_TIMEOUT=240 PYTHONDONTWRITEBYTECODE=1

export PYTHONPATH=$ROOT/src/python

launched() { # [NAME=VALUE...] -- ARGUMENT...: with flarena run
    local BEFORE AFTER
    split_at_dashes "$@"
    without_preload -u ARROW_DEFAULT_MEMORY_POOL FLARENA_LIB="$LIB" "${BEFORE[@]}" "$COMMAND" run -- "${AFTER[@]}"
}
satisfies() { # CONDITION LINE: a Python expression over the numbers of the line
    printf '%s\n' "$2"
    python3 -c 'import json, sys; line = json.loads(sys.argv[2]); sys.exit(not eval(sys.argv[1], {}, line))' "$1" "$2"
}
value() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; } # NAME: of the line on stdin
arrow() { # CONDITION [NAME=VALUE...] -- ARGUMENT...
    local BEFORE AFTER
    split_at_dashes "${@:2}"
    satisfies "$1" "$(launched "${BEFORE[@]}" -- "$PYTHON" "$HERE/arrow.py" "${AFTER[@]}")"
}
bare_arrow_keeps() { satisfies 'pool == "mimalloc" and idle > 250' "$(without_preload "$PYTHON" "$HERE/arrow.py" 2)"; }
# The jemalloc of Polars has a thread that purges, which flarena must not disturb.
bare_polars_releases() { satisfies 'peak > 250 and idle < 200' "$(without_preload "$PYTHON" "$HERE/polars_rounds.py" 200)"; }
polars() {
    local bare most
    bare=$(without_preload "$PYTHON" "$HERE/polars_rounds.py" 200)
    printf 'without flarena: %s\n' "$bare"
    most=$(($(printf '%s' "$bare" | value idle) + 32))
    satisfies "idle < $most" "$(launched -- "$PYTHON" "$HERE/polars_rounds.py" $most)"
}
markers() {
    rm -f "$SCRATCH/markers"
    launched ARROW_DEFAULT_MEMORY_POOL=mimalloc FLARENA_MARKER_FILE="$SCRATCH/markers" NVFLARE_CLIENT_MEMORY_PROFILE=1 -- \
        "$1" "$HERE/marker_fields.py" "$SCRATCH/markers"
}
need_torch() { torch_python || { echo "python3-torch cannot be installed" && exit 77; }; }
bare_torch_keeps() {
    need_torch
    satisfies 'idle > base + 100' "$(without_preload /usr/bin/python3 "$HERE/torch_rounds.py" 12)"
}
torch_releases() { # MODE
    local bare
    need_torch
    bare=$(without_preload /usr/bin/python3 "$HERE/torch_rounds.py" 0)
    printf 'without flarena: %s\n' "$bare"
    satisfies "idle < base + 40 and peak < $(printf '%s' "$bare" | value peak)" "$(in_mode "$1" /usr/bin/python3 "$HERE/torch_rounds.py" 60)"
}

check "only functions of imported libraries and of used GPUs are called" python3 "$HERE/fake_modules.py"
check "control: without flarena PyTorch keeps the memory of freed tensors when only losses live" bare_torch_keeps
for mode in glibc jemalloc; do
    check "$mode: with flarena the memory of PyTorch's freed tensors is released when idle, and the peak is lower" torch_releases $mode
done

if PYTHON=$("$ROOT/scripts/venv.sh" arrow-26.0.1 pyarrow==26.0.1 polars==2.1.0 2>"$SCRATCH/packages")/bin/python; then
    check "control: without flarena Arrow keeps hundreds of megabytes when idle" bare_arrow_keeps
    check "with flarena run Arrow's buffers come from malloc and are released when idle" arrow 'pool == "system" and idle < 200' -- 60
    check "Arrow's pool that the user selected is kept, and its free memory is released when idle" arrow 'pool == "mimalloc" and peak > 250 and idle < 200' \
        ARROW_DEFAULT_MEMORY_POOL=mimalloc -- 60
    check "flarena.trim() releases the free memory of Arrow's pool" arrow 'pool == "mimalloc" and held > 250 and trimmed < 200' \
        ARROW_DEFAULT_MEMORY_POOL=mimalloc FLARENA_GOVERNOR=off -- 0 trim
    check "with FLARENA_POOLS=off Arrow's pool keeps its memory" arrow 'pool == "mimalloc" and trimmed > 250 and idle > 250' \
        FLARENA_POOLS=off -- 3 trim
    # The rounds stay below nine tenths of the limit; the 90 MiB that the program adds exceed it. The program is never idle.
    check "near a limit the free memory of Arrow's pool is released in a busy program" arrow \
        'pool == "mimalloc" and peak > 250 and requests > 0 and busy < 200' \
        ARROW_DEFAULT_MEMORY_POOL=mimalloc FLARENA_MEMORY_LIMIT=480M -- 120 busy
    check "flarena trim PID releases the free memory of Arrow's pool" arrow 'pool == "mimalloc" and held - trimmed > 100' \
        ARROW_DEFAULT_MEMORY_POOL=mimalloc -- 0 trim "$COMMAND"
    check "control: without flarena Polars releases its memory when idle" bare_polars_releases
    check "with flarena Polars holds at most 32 MB more when idle than without" polars
    check "markers report the bytes of Python's arenas and of Arrow's pool" markers "$PYTHON"
else
    skip "Arrow and Polars release their memory" "pyarrow and polars cannot be installed: $(tail -n 1 "$SCRATCH/packages")"
fi
finish
