# shellcheck shell=bash
# Jobs of NVFlare on POC systems: starts the systems in different ways, runs a job, and checks it. run.sh and the tests of
# launchers source this file after ../lib.sh.

JOB=$ROOT/tests/nvflare/job
ROUNDS=2
# A site of NVFlare gives up when its start takes more than 15 s, so fewer jobs start at once than would fit.
AT_ONCE=3
JOB_SECONDS=${NVFLARE_JOB_SECONDS:-600}
LEAK= # megabytes that the trainer of site-2 keeps in each round of a POC system's job
CANARY=canary-5eCr3t-token
export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1

python_of() { printf '%s/build/venv-%s/bin/python' "$ROOT" "$1"; }

# Starts a command as a user does, with markers: with sub_start.sh, or alone.
launch() { # VERSION MODE FOLDER COMMAND...
    alone "${@:1:3}" FLARENA_LIB="$LIB" "$ROOT/sub_start.sh" "${@:4}"
}
alone() { # VERSION MODE FOLDER COMMAND...
    local version=$1 mode=$2 folder=$3 preload=false
    shift 3
    [ "$mode" = jemalloc ] && preload=1
    without_preload HOME="$folder" PATH="$ROOT/build/venv-$version/bin:$PATH" FLARENA_LOG=info \
        NVFLARE_ENABLE_JEMALLOC_PRELOAD=$preload NVFLARE_CLIENT_MEMORY_PROFILE=1 \
        FLARENA_MARKER_FILE="$folder/markers.jsonl" NVFLARE_POC_WORKSPACE="$folder/poc" \
        SITE_TOKEN=$CANARY ${GC:+FLARENA_GC=$GC} "$@"
}

# NVFlare's simulator (do_one_task in simulator_runner.py) has two races. Its threads, one for each site, write the
# site's name into one shared dictionary, and send it to the site's process. Both processes may get the same name. The
# threads also look for a free port, which the site's process opens seconds later. Another process may take it. The job
# then fails, or waits for the missing site without end. In a simulator and in a POC system a site also gives up when its
# start takes too long, as on a busy machine.
race_of_nvflare() { # FOLDER: prints which race the logs show; fails if they show none
    local logs=$1/workspace/job
    if grep -qsa 'identity=site-2,' "$logs/site-1/log.txt" || grep -qsa 'identity=site-1,' "$logs/site-2/log.txt"; then
        echo "both sites got the same name"
    elif grep -qsa 'Execute exception: OSError: .*Address already in use' "$1/log"; then
        echo "another process took the port of a site"
    elif lost_its_port "$1" site-1 || lost_its_port "$1" site-2; then
        echo "both sites got the same port"
    elif grep -qsaE 'Client cell could not be created|Failed to create connection to the child process' "$1"/*log; then
        echo "the start of a site took too long"
    else
        return 1
    fi
}

# The connection of the site that came second is reset, and NVFlare kills its process before that has a folder.
lost_its_port() { # FOLDER SITE
    [ ! -e "$1/workspace/job/$2" ] && grep -qsa "Communication error with client $2: .*Connection reset by peer" "$1/log"
}

# A POC system starts in four ways: sub_start.sh starts each kit; kits with FlarenaBuilder start alone; NVFlare's Slurm
# launcher starts the job of site-1; or one `nvflare poc start` starts all. The ways with Slurm:
#   none, apptainer   with the settings of docs/recipes/nvflare.md; the word is the sandbox
#   parent            with these settings, and the site is a Slurm job, too
#   bare              without these settings
poc_by_kits() { # FOLDER VERSION MODE [built|none|apptainer|parent|bare]
    local folder=$1 kits=$1/poc/example_project/prod_00 kit pids=() status=0
    prepare_poc "$folder" "$2" "${4:-}"
    for kit in localhost site-1 site-2; do
        case ${4:-}/$kit in
            built/*) alone "$2" "$3" "$folder" "$kits/$kit/startup/sub_start.sh" ;;
            parent/site-1) alone "$2" "$3" "$folder" sbatch --wait --output="$folder/site-1.slurm.log" "$folder/slurm/kit/startup/parent.slurm" ;;
            none/site-1 | apptainer/site-1 | bare/site-1) launch "$2" "$3" "$folder" "$folder/slurm/kit/startup/start_slurm.sh" ;;
            *) launch "$2" "$3" "$folder" "$kits/$kit/startup" ;;
        esac >"$folder/$kit.log" 2>&1 &
        pids+=($!)
    done
    # The kits end when submit.py shuts the system down. A submit.py that failed did not.
    submit "$folder" "$2" || { status=$? && kill_processes_of "$kits"; }
    wait "${pids[@]}" || status=$?
    return $status
}
poc_by_command() { # FOLDER VERSION MODE
    local folder=$1 status=0
    prepare_poc "$folder" "$2"
    launch "$2" "$3" "$folder" -- nvflare poc start -ex admin@nvidia.com >"$folder/start.log" 2>&1 &
    submit "$folder" "$2" || status=$?
    nvflare "$folder" "$2" poc stop || true # fails when all processes have ended already
    wait $! || true
    return $status
}

nvflare() { # FOLDER VERSION ARGUMENT...: without the library; HOME is the folder
    local folder=$1 version=$2
    shift 2
    without_preload HOME="$folder" NVFLARE_POC_WORKSPACE="$folder/poc" PATH="$ROOT/build/venv-$version/bin:$PATH" \
        nvflare "$@" </dev/null
}

prepare_poc() { # FOLDER VERSION [built|none|apptainer|parent|bare]: two sites, on free ports
    local project="$1/project.yml" ports template builder="{path: flarena.provision.FlarenaBuilder, args: {libraries: [$LIB]}}"
    template=$("$(python_of "$2")" -c 'import nvflare.lighter as l; print(l.__path__[0])')/dummy_project.yml
    ports=$(free_ports 2)
    sed "s/8002/${ports% *}/; s/8003/${ports#* }/; s/server1/localhost/" "$template" >"$project"
    [ "${3:-}" != built ] || sed -i "s|^  - path: .*[.]CertBuilder|  - $builder\n&|" "$project"
    PYTHONPATH=$ROOT/src/python nvflare "$1" "$2" poc prepare -i "$project"
    "$(python_of "$2")" "$JOB/job.py" export external $ROUNDS "$1/jobs" ${LEAK:+"$LEAK"}
    case ${3:-} in '' | built) ;; *) prepare_slurm "$@" ;; esac
}

# The kit of site-1 for Slurm. The hooks come from an environment that imitates one with the wheel. Stand-ins for the
# scheduler run the job, except where a real one does.
SCHEDULER=$JOB/scheduler.sh
prepare_slurm() { # FOLDER VERSION none|apptainer|parent|bare
    local slurm=$1/slurm jobs=$1/slurm/jobs site name executables="apptainer: $1/slurm/apptainer"
    mkdir -p "$jobs"
    "$(python_of "$2")" -m venv --without-pip "$slurm/venv"
    site=$(echo "$slurm"/venv/lib/python3*/site-packages)
    echo "$ROOT"/build/venv-"$2"/lib/python3*/site-packages >"$site/nvflare.pth"
    { echo "$ROOT/src/python" && cat "$ROOT/scripts/package/flarena-hooks.pth"; } >"$site/flarena-hooks.pth"
    cp "$JOB/container.sh" "$slurm/apptainer"
    for name in ${SCHEDULER:+sbatch squeue sacct scancel}; do
        cp "$SCHEDULER" "$jobs/$name" # NVFlare resolves links
        executables+=", $name: $jobs/$name"
    done
    cat >"$slurm/slurm.yaml" <<YAML
runtime: slurm
job_launcher:
  sandbox: none
  python_path: $slurm/venv/bin/python
  parent_host: localhost
  internal_port: $(free_ports 1)
  internal_connection_security: clear
  poll_interval: 1
  executables: {$executables}
YAML
    [ "$3" = bare ] || cat >>"$slurm/slurm.yaml" <<YAML
  setup: |
    export PATH=$slurm/venv/bin:\$PATH LD_PRELOAD=$LIB
    export NVFLARE_ENABLE_JEMALLOC_PRELOAD=true NVFLARE_CLIENT_MEMORY_PROFILE=1
    export FLARENA_MARKER_FILE=$1/markers.jsonl
  forward_env: [LD_PRELOAD, NVFLARE_ENABLE_JEMALLOC_PRELOAD, NVFLARE_CLIENT_MEMORY_PROFILE, FLARENA_MARKER_FILE]
YAML
    case $3 in
        apptainer)
            : >"$slurm/image.sif"
            sed -i "s|^  sandbox: none|  sandbox: apptainer\n  image: $slurm/image.sif|" "$slurm/slurm.yaml"
            ;;
        parent)
            printf '%s\n' 'parent:' '  environment_setup: |' \
                "    exec $ROOT/sub_start.sh $slurm/kit/startup/start_slurm.sh" >>"$slurm/slurm.yaml"
            ;;
    esac
    # As NVFlare's own recipes start trainers. The export has the path of the environment.
    sed -i "s|\"$(python_of "$2")\"|\"python3\"|" "$1/jobs/job/app/config/config_fed_client.json"
    nvflare "$1" "$2" deploy prepare "$1/poc/example_project/prod_00/site-1" --config "$slurm/slurm.yaml" --output "$slurm/kit"
}

submit() { # FOLDER VERSION
    "$(python_of "$2")" "$JOB/submit.py" "$1/poc/example_project/prod_00/admin@nvidia.com" "$1/jobs/job" "$1/secrets"
}

start() { # NAME FUNCTION ARGUMENT...: runs a job in the background, at most AT_ONCE at a time
    while [ "$(jobs -rp | wc -l)" -ge $AT_ONCE ]; do wait -n || true; done
    run_job "$@" &
}

run_job() { # NAME FUNCTION ARGUMENT...: a second time after a race of NVFlare
    local name=nvflare-$1 folder=$SCRATCH/$1 function=$2 run status race
    shift 2
    for run in first second; do
        rm -rf "$folder"
        mkdir -p "$folder"
        status=0
        run_limited "$name" "$JOB_SECONDS" "$folder" "$function" "$folder" "$@" >"$folder/log" 2>&1 </dev/null || status=$?
        if [ $run = second ] || ! race=$(race_of_nvflare "$folder"); then break; fi
        echo "# $name runs a second time, after a race of NVFlare: $race"
    done
    echo $status >"$folder/status"
    [ $status -ne "$STATUS_AT_LIMIT" ] || show_hang "$name"
}

completed() { # NAME MODE TRAINERS: the job succeeded, and its markers are complete
    local folder=$SCRATCH/$1
    [ "$(cat "$folder/status")" -eq 0 ] || { explain_failure "$1"; return 1; }
    [ ! -d "$folder/workspace" ] || grep -qa 'identity=site-2,' "$folder/workspace/job/site-2/log.txt" ||
        { echo "the log of site-2 lacks the text that race_of_nvflare looks for"; return 1; }
    python3 "$JOB/verify.py" "$folder/markers.jsonl" "$2" $ROUNDS "$3" ||
        { grep -h '^flarena' "$folder"/*log; keep_logs "nvflare-$1" "$folder"; return 1; }
}
explain_failure() { # NAME
    keep_logs "nvflare-$1" "$SCRATCH/$1"
    [ "$(cat "$SCRATCH/$1/status")" -ne "$STATUS_AT_LIMIT" ] || show_hang "nvflare-$1"
    tail -n 15 "$SCRATCH/$1/log"
}
keeps_secrets() { # NAME: markers and messages contain neither the canary nor a token of NVFlare's processes
    local folder=$SCRATCH/$1
    { echo $CANARY; cat "$folder/secrets" 2>/dev/null || true; } >"$folder/forbidden"
    if grep -Fn -f "$folder/forbidden" "$folder/markers.jsonl"; then return 1; fi
    ! cat "$folder"/*log | grep -E '\[RSS\]|flarena: ' | grep -F -f "$folder/forbidden"
}
had_secrets() { [ "$(wc -l <"$SCRATCH/$1/secrets")" -ge 2 ]; }
