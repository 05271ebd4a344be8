#!/usr/bin/env bash
# What other libraries allocate beside malloc: kept small at start, given back at a trim and at rest, named in markers.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

HERE=$ROOT/tests/pools
COMMAND=${FLARENA_TEST_COMMAND:-$ROOT/target/release/flarena}
VENV=$ROOT/build/venv-pools
export COMMAND_TIMEOUT=120 PYTHONDONTWRITEBYTECODE=1

packages() { # once; half an environment is made again
    [ -e "$VENV/.ready" ] && "$VENV/bin/python" -c pass && return
    rm -rf "$VENV"
    python3 -m venv "$VENV" && "$VENV/bin/pip" install --quiet --disable-pip-version-check pyarrow==26.0.1 polars==2.1.0 &&
        : >"$VENV/.ready"
}
PYTHON=$VENV/bin/python
export PYTHONPATH=$ROOT/src/python

launched() { # [NAME=VALUE...] -- ARGUMENT...: as a person starts a job
    local BEFORE AFTER
    split_at_dashes "$@"
    without_preload -u ARROW_DEFAULT_MEMORY_POOL FLARENA_LIB="$LIB" "${BEFORE[@]}" "$COMMAND" run -- "${AFTER[@]}"
}
holds() { # CONDITION LINE: the line of numbers fulfils it
    printf '%s\n' "$2"
    python3 -c 'import json, sys; line = json.loads(sys.argv[2]); sys.exit(not eval(sys.argv[1], {}, line))' "$1" "$2"
}
value() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; } # NAME: of the line on stdin
arrow() { # CONDITION [NAME=VALUE...] -- ARGUMENT...
    local BEFORE AFTER
    split_at_dashes "${@:2}"
    holds "$1" "$(launched "${BEFORE[@]}" -- "$PYTHON" "$HERE/arrow.py" "${AFTER[@]}")"
}
bare_arrow_keeps() { holds 'pool == "mimalloc" and idle > 250' "$(without_preload "$PYTHON" "$HERE/arrow.py" 2)"; }
# A control: its jemalloc has a thread that purges. Ours must not be in its way.
bare_polars_gives_back() { holds 'peak > 250 and idle < 200' "$(without_preload "$PYTHON" "$HERE/polars_rounds.py")"; }
polars() {
    local bare
    bare=$(without_preload "$PYTHON" "$HERE/polars_rounds.py")
    printf 'without flarena: %s\n' "$bare"
    holds "idle < $(printf '%s' "$bare" | value idle) + 32" "$(launched -- "$PYTHON" "$HERE/polars_rounds.py")"
}
library() { # NAME PACKAGE: its path, installed where it may be
    local path
    path=$(compgen -G "/usr/lib/*/$1") || { install_packages "$2" && path=$(compgen -G "/usr/lib/*/$1"); } ||
        { echo "$2 cannot be installed" && exit 77; }
    printf '%s' "$path"
}
foreign() { # LIBRARY PACKAGE MALLOC FREE WAY [NAME=VALUE...]
    local path way=$5 malloc=$3 free=$4
    path=$(library "$1" "$2")
    shift 5
    # Preloaded behind ours: what needs static TLS cannot be loaded later.
    in_mode glibc LD_PRELOAD="$LIB:$path" MALLOC_CONF=dirty_decay_ms:-1,muzzy_decay_ms:-1 "$@" python3 "$HERE/foreign.py" "$path" "$malloc" "$free" "$way"
}
left_alone() { { foreign "$@" FLARENA_POOLS=off 2>&1 || :; } | grep 'MB are left$'; }
markers() {
    rm -f "$SCRATCH/markers"
    launched ARROW_DEFAULT_MEMORY_POOL=mimalloc FLARENA_MARKER_FILE="$SCRATCH/markers" NVFLARE_CLIENT_MEMORY_PROFILE=1 -- \
        "$1" "$HERE/tells.py" "$SCRATCH/markers"
}
need_torch() { torch_python || { echo "python3-torch cannot be installed" && exit 77; }; }
torch() {
    need_torch
    in_mode glibc /usr/bin/python3 "$HERE/torch_cpu.py"
}
bare_torch_keeps() {
    need_torch
    holds 'idle > base + 100' "$(without_preload /usr/bin/python3 "$HERE/torch_rounds.py")"
}
torch_gives_back() { # MODE
    local bare
    need_torch
    bare=$(without_preload /usr/bin/python3 "$HERE/torch_rounds.py")
    printf 'without flarena: %s\n' "$bare"
    holds "idle < base + 40 and peak < $(printf '%s' "$bare" | value peak)" "$(in_mode "$1" /usr/bin/python3 "$HERE/torch_rounds.py")"
}

check "nothing is called of a library that is not imported or of a GPU that is not used" python3 "$HERE/stand_ins.py"
check "PyTorch without a GPU is left as it is" torch
check "a control: where only its losses live, PyTorch by itself keeps its tensors' memory" bare_torch_keeps
for mode in glibc jemalloc; do
    check "$mode: under flarena the memory of PyTorch's tensors goes back at rest, and its peak is lower" torch_gives_back $mode
done
for way in trim idle; do
    check "a jemalloc in a library gives back what it keeps: $way" foreign libjemalloc.so.2 libjemalloc2 malloc free "$way"
done
# Debian's, of version 2, gives back only to the thread that freed.
check "a mimalloc in a library gives back what it keeps: trim" foreign libmimalloc.so.2 libmimalloc2.0 mi_malloc mi_free trim
check "FLARENA_POOLS=off leaves an allocator in a library alone" left_alone libjemalloc.so.2 libjemalloc2 malloc free trim

if packages >"$SCRATCH/packages" 2>&1; then
    check "Arrow by itself keeps hundreds of megabytes at rest" bare_arrow_keeps
    check "under flarena run Arrow's buffers come from malloc and go back at rest" arrow 'pool == "system" and idle < 200' -- 10
    check "the user's pool for Arrow stays, and is emptied at rest" arrow 'pool == "mimalloc" and held > 250 and idle < 200' \
        ARROW_DEFAULT_MEMORY_POOL=mimalloc -- 12
    check "flarena.trim() empties Arrow's pool" arrow 'pool == "mimalloc" and held > 250 and trimmed < 200' \
        ARROW_DEFAULT_MEMORY_POOL=mimalloc -- 0 trim
    check "FLARENA_POOLS=off leaves Arrow's pool alone" arrow 'pool == "mimalloc" and trimmed > 250 and idle > 250' \
        FLARENA_POOLS=off -- 3 trim
    # The rounds stay below nine tenths of it, the program's own 90 MiB more do not; and it never rests.
    check "near a limit a busy program's Arrow is asked to give back, and does" arrow \
        'pool == "mimalloc" and held > 250 and asked > 0 and busy < 200' \
        ARROW_DEFAULT_MEMORY_POOL=mimalloc FLARENA_MEMORY_LIMIT=480M -- 30 busy
    check "flarena trim PID empties Arrow's pool" launched ARROW_DEFAULT_MEMORY_POOL=mimalloc -- "$PYTHON" "$HERE/asked.py" "$COMMAND"
    check "a control: Polars gives back at rest by itself, without flarena" bare_polars_gives_back
    check "and holds no more than that at rest under flarena" polars
    check "markers name Python's arenas and Arrow's pool" markers "$PYTHON"
else
    skip "Arrow and Polars are kept small" "pyarrow and polars cannot be installed: $(tail -n 1 "$SCRATCH/packages")"
fi
finish
