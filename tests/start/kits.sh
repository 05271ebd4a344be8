# shellcheck shell=bash
# Startup kits: imitations, and the real ones that NVFlare generates.

mock_kit() { # STARTUP-FOLDER client|server
    mkdir -p "$1"
    cp kit.sh "$1/sub_start.sh"
    echo '{}' >"$1/fed_$2.json"
}

real_kits() { # NVFLARE_VERSION: prints the folder of server, site-1 ...; 77 when NVFlare cannot be installed
    local venv folder=$SCRATCH/poc-$1
    venv=$("$ROOT/scripts/venv.sh" "$1" 2>"$SCRATCH/venv.log") || { tail -n 1 "$SCRATCH/venv.log" && return 77; }
    [ -d "$folder" ] || NVFLARE_POC_WORKSPACE=$folder HOME=$SCRATCH "$venv/bin/nvflare" poc prepare -n 1 >"$SCRATCH/poc.log" 2>&1 ||
        { cat "$SCRATCH/poc.log" && return 1; }
    echo "$folder/example_project/prod_00"
}

# Makes a python3 that prints its environment, and prints its folder.
printing_python() {
    local bin=$SCRATCH/bin
    mkdir -p "$bin"
    cat >"$bin/python3" <<'END'
#!/bin/sh
"$SHOW" LD_PRELOAD MALLOC_ARENA_MAX FLARENA_ROLE PYTHONPATH | sed 's/^/seen: /'
printf 'seen: %s\n' "$3"
END
    chmod +x "$bin/python3"
    echo "$bin"
}
