#!/usr/bin/env bash
# Programs that use an NVIDIA GPU: the same results as without the library, and the truth about pinned memory. Needs a
# python3 with PyTorch for CUDA; some tests need CuPy, JAX, NVFlare or compute-sanitizer.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

HERE=$ROOT/tests/gpu
COMMAND=${FLARENA_TEST_COMMAND:-$ROOT/target/release/flarena}
export COMMAND_TIMEOUT=300 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$ROOT/src/python${PYTHONPATH:+:$PYTHONPATH}

has() { # MODULE
    without_preload python3 -c "import $1" >/dev/null 2>&1 || { echo "no Python package $1" && exit 77; }
}
launched() { # MODE WORD...: with flarena run
    local mode=$1
    shift
    without_preload FLARENA_LIB="$LIB" "$COMMAND" run --allocator "$mode" "$@"
}
same() { # MODE COMMAND...: it prints the same with the library
    local mode=$1 bare
    shift
    bare=$(without_preload "$@" 2>"$SCRATCH/stderr") || { cat "$SCRATCH/stderr"; return 1; }
    [ -n "$bare" ]
    launched "$mode" -- "$@" >"$SCRATCH/with"
    diff <(printf '%s\n' "$bare") "$SCRATCH/with"
}
copies() { # MODE
    launched "$1" -- python3 "$HERE/copies.py" 15
}
job() { # MODE: the models of each round
    local folder=$SCRATCH/job-$1 job
    mkdir "$folder"
    job=(python3 "$ROOT/scripts/quickstart/job.py" "$folder" 3 "$folder" "$HERE/nvflare_trainer.py")
    if [ "$1" = bare ]; then
        without_preload "${job[@]}"
    else
        launched "$1" --marker-file "$folder/markers" -- "${job[@]}"
    fi >"$folder/log" 2>&1 || { tail -n 30 "$folder/log"; return 1; }
    sort "$folder"/site-*.txt
}
same_job() { # MODE
    has nvflare
    [ -e "$SCRATCH/bare-models" ] || job bare >"$SCRATCH/bare-models"
    [ "$(wc -l <"$SCRATCH/bare-models")" -eq 6 ]
    job "$1" >"$SCRATCH/models"
    diff "$SCRATCH/bare-models" "$SCRATCH/models"
    without_preload "$COMMAND" report "$SCRATCH/job-$1/markers" >"$SCRATCH/job-$1/report"
    grep -E '^\S+ +site-1 +TR ' "$SCRATCH/job-$1/report"
    ! grep -E '^killed' "$SCRATCH/job-$1/report"
}
joined() { # FILE: without the breaks of lines at the width of the terminal
    tr -s ' \n' ' ' <"$1"
}
pinned() { # MODE counted|released
    launched "$1" -- python3 "$HERE/pinned.py" "$2" 2>&1
}
cache() { # MODE
    rm -f "$SCRATCH/markers"
    launched "$1" --marker-file "$SCRATCH/markers" -- python3 "$HERE/cache.py" "$SCRATCH/markers" 2>&1
}
report_names() { # MODE PATTERN PROGRAM [ARGUMENT]: in the report of a program that grows
    rm -f "$SCRATCH/markers"
    launched "$1" --marker-file "$SCRATCH/markers" -- python3 "$HERE/$3" "${@:4}" >"$SCRATCH/log" 2>&1
    without_preload "$COMMAND" report "$SCRATCH/markers" >"$SCRATCH/report"
    cat "$SCRATCH/report"
    joined "$SCRATCH/report" | grep "$2"
}
doctor() { # MODE: of a process that holds pinned memory
    local pid launcher
    mkfifo "$SCRATCH/stdin-$1"
    launched "$1" --marker-file "$SCRATCH/markers" -- python3 "$HERE/pinned.py" wait <"$SCRATCH/stdin-$1" >"$SCRATCH/ready" 2>"$SCRATCH/log" &
    launcher=$!
    exec 7>"$SCRATCH/stdin-$1"
    eventually grep -E '^[0-9]+$' "$SCRATCH/ready"
    pid=$(<"$SCRATCH/eventually")
    without_preload "$COMMAND" doctor --all "$pid" >"$SCRATCH/doctor" || :
    without_preload "$COMMAND" stats "$pid" >"$SCRATCH/stats"
    exec 7>&-
    wait "$launcher"
    cat "$SCRATCH/doctor" "$SCRATCH/stats"
    joined "$SCRATCH/doctor" | grep 'PyTorch has pinned 512.0 MB of it for a GPU'
    joined "$SCRATCH/doctor" | grep 'are pages of the NVIDIA driver'
    grep 'pinned .* part of shared: pinned for a GPU by PyTorch' "$SCRATCH/stats"
}
sanitizer() { # MODE
    command -v compute-sanitizer >/dev/null || { echo "no compute-sanitizer" && exit 77; }
    has cupy
    launched "$1" -- compute-sanitizer python3 -c 'if True:
        import cupy
        assert int(cupy.arange(1 << 20).sum()) == 549755289600
        assert "libflarena" in open("/proc/self/maps").read()' >"$SCRATCH/log" 2>&1 || { cat "$SCRATCH/log"; return 1; }
    grep 'ERROR SUMMARY: 0 errors' "$SCRATCH/log"
}
compiled() { # MODE
    same "$1" python3 -c 'import torch; print(torch.compile(lambda x: (x * 2 + 1).relu().sum())(torch.ones(1 << 20, device="cuda")).item())'
}
jax() { # MODE
    has jax
    same "$1" python3 -c 'import jax, jax.numpy as jnp; assert jax.default_backend() == "gpu"; x = jnp.ones((2048, 2048)); print(float((x @ x).sum()))'
}

if ! without_preload python3 -c 'import torch; assert torch.cuda.is_available()' >/dev/null 2>&1; then
    skip "programs that use a GPU" "there is no GPU, or no PyTorch that can use it"
    finish
    exit
fi
for mode in glibc jemalloc; do
    check "$mode: a network trained on the GPU has the same weights, bit for bit" same "$mode" python3 "$HERE/train.py" 3
    check_output "$mode: copies between recycled blocks and the GPU keep each byte, also of blocks that CUDA registers" \
        "each byte is right" copies "$mode"
    check "$mode: an NVFlare job whose trainers use the GPU has the same models in each round" same_job "$mode"
    check "$mode: pinned memory is counted from its first byte, and counting starts no driver" pinned "$mode" counted
    check "$mode: a trim frees pinned memory that is no longer in use" pinned "$mode" released
    check "$mode: markers have the sizes of PyTorch's cache on the GPU, and asking starts no driver and no context" cache "$mode"
    check "$mode: the report names growth of pinned memory" \
        report_names "$mode" 'live growth: .* memory pinned for the GPU.*flarena.trim' pinned.py leak
    check "$mode: the report names growth of PyTorch's cache on the GPU" \
        report_names "$mode" "GPU memory grows by 12.0 MB/round .* PyTorch's cache has reserved more, .* cuda_empty_cache=True" cache_growth.py
    check "$mode: doctor and stats name pinned memory as a part of shared memory" doctor "$mode"
    check "$mode: a program under compute-sanitizer runs with the library" sanitizer "$mode"
    check "$mode: a function that torch.compile compiles has the same result" compiled "$mode"
    check "$mode: JAX has the same result" jax "$mode"
done
finish
