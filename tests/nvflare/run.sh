#!/usr/bin/env bash
# NVFlare itself on the library: its memory functions, whole jobs in the simulator, and POC systems.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

JOB=$ROOT/tests/nvflare/job
HOOKS=$ROOT/src/python/flarena/hooks
VERSIONS=(2.9.0 2.7.2)
ROUNDS=2
AT_ONCE=4 # jobs mostly wait; each has up to eight processes of 90 MB
CANARY=canary-5eCr3t-token
export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1

# A job that goes wrong leaves processes behind. All of ours name the scratch folder.
trap 'kill_leftovers; rm -rf "$SCRATCH"' EXIT

python_of() { printf '%s/build/venv-%s/bin/python' "$ROOT" "$1"; }

# Runs a command through sub_start.sh as a user would, in a version's environment, markers on.
launch() { # VERSION MODE FOLDER COMMAND...
    local version=$1 mode=$2 folder=$3 preload=false
    shift 3
    [ "$mode" = jemalloc ] && preload=1
    without_preload HOME="$folder" PATH="$ROOT/build/venv-$version/bin:$PATH" FLARENA_LIB="$LIB" FLARENA_LOG=info \
        NVFLARE_ENABLE_JEMALLOC_PRELOAD=$preload NVFLARE_CLIENT_MEMORY_PROFILE=1 \
        FLARENA_MARKER_FILE="$folder/markers.jsonl" NVFLARE_POC_WORKSPACE="$folder/poc" \
        SITE_TOKEN=$CANARY "$ROOT/sub_start.sh" "$@"
}

simulate() { # FOLDER VERSION MODE TRAINERS
    launch "$2" "$3" "$1" -- python "$JOB/job.py" simulate "$4" $ROUNDS "$1/workspace" --token $CANARY
}

# The two ways to start a POC system: each kit by sub_start.sh, or all of them by one `nvflare poc start`.
poc_by_kits() { # FOLDER VERSION MODE
    local folder=$1 kits=$1/poc/example_project/prod_00 kit pids=() status=0
    prepare_poc "$folder" "$2"
    for kit in localhost site-1 site-2; do
        launch "$2" "$3" "$folder" "$kits/$kit/startup" >"$folder/$kit.log" 2>&1 &
        pids+=($!)
    done
    submit "$folder" "$2" || status=$?
    wait "${pids[@]}" || status=$? # the kits end by themselves when the system is shut down
    return $status
}
poc_by_command() { # FOLDER VERSION MODE
    local folder=$1 status=0
    prepare_poc "$folder" "$2"
    launch "$2" "$3" "$folder" -- nvflare poc start -ex admin@nvidia.com >"$folder/start.log" 2>&1 &
    submit "$folder" "$2" || status=$?
    nvflare "$folder" "$2" poc stop || true # says so when all have ended already
    wait $! || true
    return $status
}

nvflare() { # FOLDER VERSION ARGUMENT...: bare, in the folder's own home
    local folder=$1 version=$2
    shift 2
    without_preload HOME="$folder" NVFLARE_POC_WORKSPACE="$folder/poc" PATH="$ROOT/build/venv-$version/bin:$PATH" \
        nvflare "$@" </dev/null
}

prepare_poc() { # FOLDER VERSION: two sites, on ports that are free
    local project="$1/project.yml" ports template
    template=$("$(python_of "$2")" -c 'import nvflare.lighter as l; print(l.__path__[0])')/dummy_project.yml
    ports=$(python3 -c 'import socket; s = [socket.create_server(("", 0)) for _ in "12"]; print(*(x.getsockname()[1] for x in s))')
    sed "s/8002/${ports% *}/; s/8003/${ports#* }/; s/server1/localhost/" "$template" >"$project"
    nvflare "$1" "$2" poc prepare -i "$project"
    "$(python_of "$2")" "$JOB/job.py" export external $ROUNDS "$1/jobs"
}

submit() { # FOLDER VERSION
    "$(python_of "$2")" "$JOB/submit.py" "$1/poc/example_project/prod_00/admin@nvidia.com" "$1/jobs/job" "$1/secrets"
}

start() { # NAME FUNCTION ARGUMENT...: runs it in the background, at most AT_ONCE at a time
    local folder=$SCRATCH/$1 name=$2
    shift 2
    mkdir -p "$folder"
    while [ "$(jobs -rp | wc -l)" -ge $AT_ONCE ]; do wait -n || true; done
    (
        status=0
        "$name" "$folder" "$@" >"$folder/log" 2>&1 </dev/null || status=$?
        echo $status >"$folder/status"
    ) &
}

completed() { # NAME MODE TRAINERS: it ended well, and its markers are those of a whole job
    local folder=$SCRATCH/$1
    [ "$(cat "$folder/status")" -eq 0 ] || { tail -n 40 "$folder"/*log; return 1; }
    python3 "$JOB/verify.py" "$folder/markers.jsonl" "$2" $ROUNDS "$3" || { grep -h '^flarena' "$folder"/*log; return 1; }
}
keeps_secrets() { # NAME: neither the canary nor a token that NVFlare handed to its processes
    local folder=$SCRATCH/$1
    { echo $CANARY; cat "$folder/secrets" 2>/dev/null || true; } >"$folder/forbidden"
    if grep -Fn -f "$folder/forbidden" "$folder/markers.jsonl"; then return 1; fi
    ! cat "$folder"/*log | grep -E '\[RSS\]|flarena: ' | grep -F -f "$folder/forbidden"
}
had_secrets() { [ "$(wc -l <"$SCRATCH/$1/secrets")" -ge 2 ]; }

asks() { in_mode "$2" "$(python_of "$1")" "$JOB/asks_memory_utils.py" "$2"; }
purges() {
    in_mode jemalloc MALLOC_CONF=dirty_decay_ms:-1,muzzy_decay_ms:-1 PYTHONPATH="$HOOKS" "$(python_of "$1")" "$JOB/cleans_up.py"
}

for version in "${VERSIONS[@]}"; do
    "$ROOT/scripts/venv.sh" "$version" >/dev/null || { fail "nvflare $version can be installed"; finish; exit; }
done

for version in "${VERSIONS[@]}"; do
    for mode in glibc jemalloc; do
        for trainers in external in-process; do
            start "$version-$mode-$trainers" simulate "$version" $mode $trainers
        done
    done
done
start 2.9.0-poc-glibc poc_by_kits 2.9.0 glibc
start 2.9.0-poc-jemalloc poc_by_command 2.9.0 jemalloc
start 2.7.2-poc-glibc poc_by_command 2.7.2 glibc
start 2.7.2-poc-jemalloc poc_by_kits 2.7.2 jemalloc

for version in "${VERSIONS[@]}"; do
    for mode in glibc jemalloc; do
        check "nvflare $version, $mode: its own memory_utils, unmodified, answer rightly" asks "$version" $mode
    done
    check "nvflare $version: cleanup_memory really purges jemalloc" purges "$version"
done
wait
for version in "${VERSIONS[@]}"; do
    for mode in glibc jemalloc; do
        for trainers in external in-process; do
            name=$version-$mode-$trainers
            check "nvflare $version, $mode: a simulator job, trainers $trainers, marks each stage of each round once" \
                completed "$name" $mode $trainers
            check "nvflare $version, $mode: its markers and our messages hold no token, trainers $trainers" keeps_secrets "$name"
        done
        name=$version-poc-$mode
        check "nvflare $version, $mode: a POC system starts, runs a job with all markers, and stops" completed "$name" $mode external
        check "nvflare $version, $mode: the POC job had tokens in argv or environ" had_secrets "$name"
        check "nvflare $version, $mode: none of them reached a marker or a message" keeps_secrets "$name"
    done
done
finish
