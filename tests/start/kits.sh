# shellcheck shell=bash
# Startup kits to start: stand-ins made on the spot, and the real ones that NVFlare generates.

mock_kit() { # STARTUP-FOLDER client|server
    mkdir -p "$1"
    cp kit.sh "$1/sub_start.sh"
    echo '{}' >"$1/fed_$2.json"
}

real_kits() { # NVFLARE_VERSION: print the folder that holds server, site-1 ...; 77 when it cannot be had
    local venv folder=$SCRATCH/poc-$1
    venv=$("$ROOT/scripts/venv.sh" "$1" 2>"$SCRATCH/venv.log") || { tail -n 1 "$SCRATCH/venv.log" && return 77; }
    [ -d "$folder" ] || NVFLARE_POC_WORKSPACE=$folder HOME=$SCRATCH "$venv/bin/nvflare" poc prepare -n 1 >"$SCRATCH/poc.log" 2>&1 ||
        { cat "$SCRATCH/poc.log" && return 1; }
    echo "$folder/example_project/prod_00"
}

# The python3 that a kit starts, replaced by one that tells what it was given.
python_that_tells() {
    local bin=$SCRATCH/bin
    mkdir -p "$bin"
    cat >"$bin/python3" <<'END'
#!/bin/sh
"$SHOW" LD_PRELOAD MALLOC_ARENA_MAX FLARENA_ROLE PYTHONPATH | sed 's/^/told: /'
printf 'told: %s\n' "$3"
END
    chmod +x "$bin/python3"
    echo "$bin"
}
