#!/usr/bin/env bash
# NVFlare runs with the library: its memory functions, whole jobs in the simulator, and POC systems.
#
#   NVFLARE_VERSIONS=latest tests/nvflare/run.sh    the newest version on PyPI, pre-releases included (scripts/soak.sh nvflare)
#
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

JOB=$ROOT/tests/nvflare/job
HOOKS=$ROOT/src/python/flarena/hooks
read -ra VERSIONS <<<"${NVFLARE_VERSIONS:-2.9.0 2.7.2}"
# Tested briefly: in a whole run the scheduled form tests it like a release.
PRE_RELEASES=()
[ -n "${NVFLARE_VERSIONS-}" ] || PRE_RELEASES=(2.9.1rc5)
ROUNDS=2
# A site of NVFlare gives up when its start takes more than 15 s, so fewer jobs start at once than would fit.
AT_ONCE=3
JOB_SECONDS=${NVFLARE_JOB_SECONDS:-600}
CANARY=canary-5eCr3t-token
export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1

trap 'kill_leftovers; rm -rf "$SCRATCH"' EXIT

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
        SITE_TOKEN=$CANARY "$@"
}

simulate() { # FOLDER VERSION MODE TRAINERS
    in_simulator "$1" "$2" "$3" "$JOB/job.py" simulate "$4" $ROUNDS "$1/workspace" --token $CANARY
}
simulate_workflows() { # FOLDER VERSION
    in_simulator "$1" "$2" glibc "$JOB/workflows.py" simulate "$1/workspace"
}
in_simulator() { # FOLDER VERSION MODE PROGRAM...
    local job
    launch "$2" "$3" "$1" -- python "${@:4}" &
    job=$!
    while kill -0 $job 2>/dev/null; do
        if race_of_nvflare "$1" >/dev/null; then kill_processes_of "$1"; fi
        sleep 1
    done
    wait $job
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
# launcher starts the job of site-1; or one `nvflare poc start` starts all.
poc_by_kits() { # FOLDER VERSION MODE [built|none|apptainer]: the last two are Slurm's containers
    local folder=$1 kits=$1/poc/example_project/prod_00 kit pids=() status=0
    prepare_poc "$folder" "$2" "${4:-}"
    for kit in localhost site-1 site-2; do
        case ${4:-}/$kit in
            built/*) alone "$2" "$3" "$folder" "$kits/$kit/startup/sub_start.sh" ;;
            none/site-1 | apptainer/site-1) launch "$2" "$3" "$folder" "$folder/slurm/kit/startup/start_slurm.sh" ;;
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

# The kernel gives ports from 32768 on to programs that ask for any port. Such a program cannot take the ports below
# before the server opens them.
free_ports() {
    python3 -c 'if True:
        import random, socket
        is_free = lambda port: socket.socket().connect_ex(("localhost", port))
        print(*[port for port in random.sample(range(20000, 32768), 50) if is_free(port)][:2])'
}
prepare_poc() { # FOLDER VERSION [built|none|apptainer]: two sites, on free ports
    local project="$1/project.yml" ports template builder="{path: flarena.provision.FlarenaBuilder, args: {libraries: [$LIB]}}"
    template=$("$(python_of "$2")" -c 'import nvflare.lighter as l; print(l.__path__[0])')/dummy_project.yml
    ports=$(free_ports)
    sed "s/8002/${ports% *}/; s/8003/${ports#* }/; s/server1/localhost/" "$template" >"$project"
    [ "${3:-}" != built ] || sed -i "s|^  - path: .*[.]CertBuilder|  - $builder\n&|" "$project"
    PYTHONPATH=$ROOT/src/python nvflare "$1" "$2" poc prepare -i "$project"
    "$(python_of "$2")" "$JOB/job.py" export external $ROUNDS "$1/jobs"
    case ${3:-} in none | apptainer) prepare_slurm "$@" ;; esac
}

# The kit of site-1 for Slurm, with the settings of docs/recipes/nvflare.md. The hooks come from an environment that
# imitates one with the wheel.
prepare_slurm() { # FOLDER VERSION none|apptainer
    local slurm=$1/slurm jobs=$1/slurm/jobs site name
    mkdir -p "$jobs"
    "$(python_of "$2")" -m venv --without-pip "$slurm/venv"
    site=$(echo "$slurm"/venv/lib/python3*/site-packages)
    echo "$ROOT"/build/venv-"$2"/lib/python3*/site-packages >"$site/nvflare.pth"
    { echo "$ROOT/src/python" && cat "$ROOT/scripts/package/flarena-hooks.pth"; } >"$site/flarena-hooks.pth"
    cp "$JOB/container.sh" "$slurm/apptainer"
    : >"$slurm/image.sif"
    for name in sbatch squeue sacct scancel; do cp "$JOB/scheduler.sh" "$jobs/$name"; done # NVFlare resolves links
    cat >"$slurm/slurm.yaml" <<YAML
runtime: slurm
job_launcher:
  sandbox: $3$([ "$3" = none ] || echo $'\n  'image: "$slurm/image.sif")
  python_path: $slurm/venv/bin/python
  parent_host: localhost
  internal_port: $(free_ports | cut -d ' ' -f 1)
  internal_connection_security: clear
  poll_interval: 1
  executables: {sbatch: $jobs/sbatch, squeue: $jobs/squeue, sacct: $jobs/sacct, scancel: $jobs/scancel, apptainer: $slurm/apptainer}
  setup: |
    export PATH=$slurm/venv/bin:\$PATH LD_PRELOAD=$LIB
    export NVFLARE_ENABLE_JEMALLOC_PRELOAD=true NVFLARE_CLIENT_MEMORY_PROFILE=1
    export FLARENA_MARKER_FILE=$1/markers.jsonl
  forward_env: [LD_PRELOAD, NVFLARE_ENABLE_JEMALLOC_PRELOAD, NVFLARE_CLIENT_MEMORY_PROFILE, FLARENA_MARKER_FILE]
YAML
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
    [ $status -ne $STATUS_AT_LIMIT ] || show_hang "$name"
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
    [ "$(cat "$SCRATCH/$1/status")" -ne $STATUS_AT_LIMIT ] || show_hang_summary "nvflare-$1"
    tail -n 15 "$SCRATCH/$1/log"
}
keeps_secrets() { # NAME: markers and messages contain neither the canary nor a token of NVFlare's processes
    local folder=$SCRATCH/$1
    { echo $CANARY; cat "$folder/secrets" 2>/dev/null || true; } >"$folder/forbidden"
    if grep -Fn -f "$folder/forbidden" "$folder/markers.jsonl"; then return 1; fi
    ! cat "$folder"/*log | grep -E '\[RSS\]|flarena: ' | grep -F -f "$folder/forbidden"
}
had_secrets() { [ "$(wc -l <"$SCRATCH/$1/secrets")" -ge 2 ]; }

hang_is_reported() {
    local name=nvflare-provoked-hang folder=$SCRATCH/hang status=0
    mkdir "$folder"
    run_limited $name 5 "$folder" never_ends "$folder" || status=$?
    show_hang $name
    [ $status -eq $STATUS_AT_LIMIT ]
    show_hang $name | grep -q 'the job has started'
    [ -z "$(processes_of "$folder")" ]
    [ "$(command -v gdb "$ROOT/build/venv-py-spy/bin/py-spy" | wc -l)" -eq 2 ] || { echo "py-spy or gdb cannot be installed" && exit 77; }
    show_hang $name | grep -q 'sleeps_for_ever (.*hangs.py:'
    show_hang $name | grep -qE '^ *#[0-9]+ .*nanosleep'
    show_hang_summary $name | grep -q '^  [0-9]*: hangs.py .*: sleeps_for_ever (hangs.py:'
}
library_is_named() {
    summarize_hang /dev/stdin <<'REPORT'
== stacks of process 7: /usr/bin/python3 -u /tmp/train.py
Thread 2 (Thread 0x7f00 (LWP 8) "flarena"):
#0  __GI_ppoll (...) at poll.c:42
#1  flarena_shim::governor::sleep (...) at mod.rs:9
Thread 1 (Thread 0x7f01 (LWP 7) "python3"):
#0  syscall () at syscall.S:38
#1  flarena_sys::sync::lock (...) at futex.rs:5
#2  malloc (...) at exports.rs:7

== the last errors in site-1/error_log.txt
ERROR - no trainer

== the end of site-1/error_log.txt
REPORT
}
never_ends() { in_mode glibc HOME="$1" python3 "$JOB/hangs.py" >"$1/log" 2>&1; } # FOLDER

race_is_recognised() { # RACE
    run_job "provoked-$1" races_once "$1" "$SCRATCH/$1" | tee /dev/stderr | grep -q 'runs a second time'
    [ "$(cat "$SCRATCH/provoked-$1/status")" -eq 0 ]
}
races_once() { # FOLDER RACE MARK: the logs of a job; of one with a race if it is the first job
    mkdir -p "$1/workspace/job/site-1"
    [ -e "$3" ] || "$2" "$1"
    touch "$3"
}
name_race() { echo '[identity=site-2, run=simulate_job]' >"$1/workspace/job/site-1/log.txt"; }
port_race() { echo 'ERROR - Execute exception: OSError: [Errno 98] Address already in use'; }
same_port() {
    rmdir "$1/workspace/job/site-1"
    echo 'ERROR - Communication error with client site-1: [Errno 104] Connection reset by peer'
}
slow_start() { echo 'RuntimeError: Client cell could not be created. Failed to login the client.'; }

asks() { in_mode "$2" "$(python_of "$1")" "$JOB/asks_memory_utils.py" "$2"; }
purges() {
    in_mode jemalloc MALLOC_CONF=dirty_decay_ms:-1,muzzy_decay_ms:-1 PYTHONPATH="$HOOKS" "$(python_of "$1")" "$JOB/cleans_up.py"
}

collab_leak_is_found() { # VERSION: the markers of each call have site and round, and the report finds the growth
    local markers=$SCRATCH/collab-$1.jsonl status=0
    in_mode glibc NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_MARKER_FILE="$markers" PYTHONPATH="$HOOKS" \
        "$(python_of "$1")" "$JOB/collab_calls.py"
    [ "$(grep -c '"site":"site-1","round":[0-9]*,"stage":"\(before\|after\)_call"' "$markers")" -eq 40 ]
    "$ROOT/target/release/flarena" report --fail-on growth:5MB/round "$markers" || status=$?
    [ $status -eq 1 ]
}

# NVFlare's runner needs an XGBoost; that for CPUs is small. The federated mode is in the large one only.
xgboost_leak_is_found() {
    local python markers=$SCRATCH/xgboost.jsonl status=0
    python=$("$ROOT/scripts/venv.sh" xgboost-3.2.0 nvflare==2.9.0 xgboost-cpu==3.2.0 tensorboard 2>/dev/null)/bin/python ||
        { echo "XGBoost cannot be installed"; return 77; }
    in_mode glibc NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_MARKER_FILE="$markers" PYTHONPATH="$HOOKS" \
        "$python" "$JOB/xgboost_rounds.py"
    [ "$(grep -c '"site":"site-1","round":[0-9]*,"stage":"boosted"' "$markers")" -eq 20 ]
    "$ROOT/target/release/flarena" report --fail-on growth:5MB/round "$markers" || status=$?
    [ $status -eq 1 ]
}

workflows_are_marked() { # NAME
    [ "$(cat "$SCRATCH/$1/status")" -eq 0 ] || { explain_failure "$1"; return 1; }
    python3 "$JOB/workflows.py" verify "$SCRATCH/$1/markers.jsonl" || { keep_logs "nvflare-$1" "$SCRATCH/$1"; return 1; }
}
in_logs_once() { # NAME: and the report counts the lines of logs and marker file once
    local folder=$SCRATCH/$1 logs=() alone with_logs
    mapfile -t logs < <(find "$SCRATCH/$1/workspace" -name log.txt)
    python3 "$JOB/logged.py" "$folder/markers.jsonl" "$folder/log" "${logs[@]}"
    alone=$(processes_in_report "$folder/markers.jsonl")
    with_logs=$(processes_in_report "$folder/markers.jsonl" "$folder/workspace")
    [ "$alone" = "$with_logs" ] && return
    echo "the report has $alone, and $with_logs with the logs:"
    "$ROOT/target/release/flarena" report "$folder/markers.jsonl" "$folder/workspace"
    return 1
}
processes_in_report() { # FILE...
    "$ROOT/target/release/flarena" report "$@" 2>/dev/null | grep -oE '^[0-9]+ processes'
}

unknown_names() { # VERSION: prints what the doctor says of the variables that NVFlare's sources name
    local names
    mapfile -t names < <(grep -rhoE '\bNVFLARE_[A-Z0-9_]+' "$ROOT/build/venv-$1"/lib/python*/site-packages/nvflare --include='*.py' --include='*.yml' | sort -u)
    [ ${#names[@]} -gt 10 ]
    { without_preload FLARENA_LIB="$LIB" "${names[@]/%/=1}" "$ROOT/target/release/flarena" doctor || true; } | grep 'there is no setting' || true
}

if [ "${VERSIONS[*]}" = latest ]; then
    VERSIONS=("$(python3 -m pip index versions --pre nvflare 2>/dev/null | sed -n 's/^nvflare (\(.*\))$/\1/p')")
fi
for version in "${VERSIONS[@]}" "${PRE_RELEASES[@]}"; do
    "$ROOT/scripts/venv.sh" "$version" >/dev/null || { fail "nvflare $version can be installed"; finish; exit; }
done

for version in "${VERSIONS[@]}"; do
    for mode in glibc jemalloc; do
        for trainers in external in-process; do
            start "$version-$mode-$trainers" simulate "$version" $mode $trainers
        done
    done
    start "$version-workflows" simulate_workflows "$version"
done
for version in "${PRE_RELEASES[@]}"; do start "$version-jemalloc-external" simulate "$version" jemalloc external; done
# sub_start.sh and `nvflare poc start` start a POC system with both modes, in two versions.
glibc=poc_by_kits jemalloc=poc_by_command
for version in "${VERSIONS[@]}"; do
    start "$version-poc-glibc" $glibc "$version" glibc
    start "$version-poc-jemalloc" $jemalloc "$version" jemalloc built # kits only
    glibc=poc_by_command jemalloc=poc_by_kits
done
start "${VERSIONS[0]}-built-jemalloc" poc_by_kits "${VERSIONS[0]}" jemalloc built
start "${VERSIONS[0]}-slurm-jemalloc" poc_by_kits "${VERSIONS[0]}" jemalloc none
start "${VERSIONS[0]}-apptainer-jemalloc" poc_by_kits "${VERSIONS[0]}" jemalloc apptainer

check "a job that never ends is killed at its limit, and its stacks and logs are reported" hang_is_reported
check_output "the summary of a hang has the frames of each process, the threads in the library, and the last errors" \
    "  in the library: 7: train.py, 1: syscall < ... < flarena_sys::sync::lock
  7: train.py: syscall () at syscall.S:38 < flarena_sys::sync::lock (...) at futex.rs:5 < malloc (...) at exports.rs:7
  site-1/error_log.txt: ERROR - no trainer" library_is_named
check "a simulator job whose sites got the same name runs a second time" race_is_recognised name_race
check "a simulator job whose site lost its port runs a second time" race_is_recognised port_race
check "a simulator job whose sites got the same port runs a second time" race_is_recognised same_port
check "a job whose site gave up during its start runs a second time" race_is_recognised slow_start
for version in "${VERSIONS[@]}" "${PRE_RELEASES[@]}"; do
    for mode in glibc jemalloc; do
        check "nvflare $version, $mode: NVFlare's unmodified memory_utils report the allocator and its memory" asks "$version" $mode
    done
    check_output "nvflare $version: the doctor calls no variable of NVFlare unknown" "" unknown_names "$version"
    check "nvflare $version: cleanup_memory purges jemalloc's dirty pages" purges "$version"
done
for version in "${VERSIONS[@]}" "${PRE_RELEASES[@]}"; do
    [[ $version != 2.7.* ]] || continue # has no Collab API
    check "nvflare $version: a leak in a method of the Collab API is found by its calls" collab_leak_is_found "$version"
done
check "a leak in a round of histogram-based XGBoost is found by its rounds" xgboost_leak_is_found
wait
for version in "${PRE_RELEASES[@]}"; do
    check "nvflare $version, jemalloc: a simulator job with external trainers marks each stage of each round once" \
        completed "$version-jemalloc-external" jemalloc external
done
for version in "${VERSIONS[@]}"; do
    for mode in glibc jemalloc; do
        for trainers in external in-process; do
            name=$version-$mode-$trainers
            check "nvflare $version, $mode: a simulator job with $trainers trainers marks each stage of each round once" \
                completed "$name" $mode $trainers
            check "nvflare $version, $mode: the markers of the job's processes are in log.txt once and on the terminal once, $trainers trainers" \
                in_logs_once "$name"
            check "nvflare $version, $mode: markers and messages of that job contain no token, $trainers trainers" keeps_secrets "$name"
        done
        name=$version-poc-$mode
        check "nvflare $version, $mode: a POC system starts, runs a job with all markers, and stops" completed "$name" $mode external
        check "nvflare $version, $mode: processes of the POC job have tokens in argv or environ" had_secrets "$name"
        check "nvflare $version, $mode: no such token appears in a marker or a message" keeps_secrets "$name"
    done
    check "nvflare $version: the server of cyclic and cross-site evaluation marks each result and each reported round" \
        workflows_are_marked "$version-workflows"
done
check "nvflare ${VERSIONS[0]}: kits that FlarenaBuilder has built start alone, and run a job with all markers" \
    completed "${VERSIONS[0]}-built-jemalloc" jemalloc external
check "nvflare ${VERSIONS[0]}: a job of NVFlare's Slurm launcher runs with all markers" \
    completed "${VERSIONS[0]}-slurm-jemalloc" jemalloc external
check "nvflare ${VERSIONS[0]}: forward_env passes the library and the settings into a container of the Slurm launcher" \
    completed "${VERSIONS[0]}-apptainer-jemalloc" jemalloc external
finish
