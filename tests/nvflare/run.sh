#!/usr/bin/env bash
# NVFlare runs with the library: its memory functions, whole jobs in the simulator, and POC systems.
#
#   NVFLARE_VERSIONS=latest tests/nvflare/run.sh    the newest version on PyPI, pre-releases included (scripts/soak.sh nvflare)
#
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/nvflare/systems.sh
. "$ROOT/tests/nvflare/systems.sh"

HOOKS=$ROOT/src/python/flarena/hooks
read -ra VERSIONS <<<"${NVFLARE_VERSIONS:-2.9.0 2.7.2}"
# Tested briefly: in a whole run the scheduled form tests it like a release.
PRE_RELEASES=()
[ -n "${NVFLARE_VERSIONS-}" ] || PRE_RELEASES=(2.9.1rc5)

trap 'kill_leftovers; rm -rf "$SCRATCH"' EXIT

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

# Debian's PyTorch and its NumPy, without Debian's other packages.
takes_debians_torch() {
    local name python=$ROOT/build/venv-${VERSIONS[0]}/bin/python
    torch_python || return
    mkdir -p "$SCRATCH/debian"
    for name in torch torchgen numpy; do ln -s "/usr/lib/python3/dist-packages/$name" "$SCRATCH/debian/$name"; done
    PYTHONPATH=$SCRATCH/debian "$python" -c 'import torch' 2>/dev/null # fails if it is made for another Python
}
simulate_models() { # FOLDER VERSION KIND auto|off: with or without the values that the hooks drop
    PYTHONPATH=$SCRATCH/debian GC=$4 in_simulator "$1" "$2" glibc "$JOB/same_models.py" "$3" "$1/workspace"
}
models_are_equal() { # NAME OTHER LINES: the hashes that two jobs have written
    local name folder
    [ -e "$SCRATCH/$1" ] || { echo "python3 cannot import Debian's python3-torch"; return 77; }
    for name in "$1" "$2"; do
        folder=$SCRATCH/$name
        [ "$(cat "$folder/status")" -eq 0 ] || { explain_failure "$name"; return 1; }
        grep '^MODEL' "$folder/said" | models_of_sites | sort >"$folder/models"
        [ "$(wc -l <"$folder/models")" -eq "$3" ] || { cat "$folder/said" && explain_failure "$name"; return 1; }
        grep -xF "FLARENA_GC ${name##*-}" "$folder/said"
    done
    diff "$SCRATCH/$1/models" "$SCRATCH/$2/models"
}
# Swarm's sites have the same models. NVFlare may end the job before one of them has run its last round or _end_run.
models_of_sites() { sed 's/ site-[12] / sites /' | awk '!/ sites / || (!/ _end_run [01] / && !seen[$0]++)'; }

# Before 2.9 two results that are processed at once may both be in one context, after the hooks have seen it. Then the server
# holds one of them for a round.
holds_two_models() { # NAME: the global model and the copy that it sends, in most rounds
    [ "$(cat "$SCRATCH/$1/status")" -eq 0 ] || { explain_failure "$1"; return 1; }
    grep '^HOLDS' "$SCRATCH/$1/said"
    [ "$(grep -cE '^HOLDS [0-9] (1\.9|2\.0)' "$SCRATCH/$1/said")" -ge 2 ]
}

hang_is_reported() {
    local name=nvflare-provoked-hang folder=$SCRATCH/hang status=0
    mkdir "$folder"
    run_limited $name 20 "$folder" never_ends "$folder" || status=$?
    show_hang $name
    [ $status -eq $STATUS_AT_LIMIT ]
    show_hang $name | grep 'the job has started'
    [ -z "$(processes_of "$folder")" ]
    [ "$(command -v gdb "$ROOT/build/venv-py-spy/bin/py-spy" | wc -l)" -eq 2 ] || { echo "py-spy or gdb cannot be installed" && exit 77; }
    show_hang $name | grep 'sleeps_for_ever (.*hangs.py:'
    show_hang $name | grep -E '^ *#[0-9]+ .*nanosleep'
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
    in_mode jemalloc MALLOC_CONF=dirty_decay_ms:-1,muzzy_decay_ms:-1 PYTHONPATH="$HOOKS" "$(python_of "$1")" "$JOB/asks_memory_utils.py" hooked
}
frees_sent() { in_mode glibc PYTHONPATH="$HOOKS" "$(python_of "$1")" "$JOB/frees_sent_messages.py"; }

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
# NVFlare archives the server's folder of a job when the job ends. The copies of the sites' logs are in it, or in the
# server's temporary folder if the streams ended later.
server_knows_the_sites() { # NAME: the report says the same of the trainers from these copies as from the marker file
    local folder=$SCRATCH/$1 job
    job=$(basename "$folder"/poc/jobs-storage/*)
    python3 -m zipfile -e "$folder/poc/jobs-storage/$job/workspace" "$folder/server"
    [ ! -e "${TMPDIR:-/tmp}/$job" ] || { cp -r "${TMPDIR:-/tmp}/$job/." "$folder/server" && rm -r "${TMPDIR:-/tmp}/$job"; }
    verdicts "$folder/markers.jsonl" >"$folder/verdicts"
    verdicts "$folder"/server/site-*/log.txt | diff "$folder/verdicts" -
    [ "$(grep -c 'site-2 TR: live growth' "$folder/verdicts")" -eq 1 ]
    grep 'site-1 TR: no growth' "$folder/verdicts"
}
verdicts() { # FILE...: of the trainers; all that are no growth are one
    "$ROOT/target/release/flarena" report --all "$@" |
        sed -nE 's/^(live growth|retention|growth|swap|file-backed) +(site-[12]) +TR .*/\2 TR: \1/p
            s/^[a-z ]+[a-z] +(site-[12]) +TR .*/\1 TR: no growth/p' | sort -u
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

# Each two of version, mode and trainers meet in one of the jobs. The scheduled form has all combinations.
trainers_of() { # VERSION MODE
    case ${NVFLARE_VERSIONS:+all}$1/$2 in
        all*) echo external in-process ;;
        "${VERSIONS[0]}/glibc" | "${VERSIONS[1]}/jemalloc") echo external ;;
        *) echo in-process ;;
    esac
}

LEAK_ROUNDS=10 # enough for a verdict, also if the copies of the logs lack the last two
torch=()
if takes_debians_torch; then torch=(torch); fi
for version in "${VERSIONS[@]}"; do
    for mode in glibc jemalloc; do
        for trainers in $(trainers_of "$version" $mode); do
            start "$version-$mode-$trainers" simulate "$version" $mode "$trainers"
        done
    done
    start "$version-workflows" simulate_workflows "$version"
    for kind in known swarm "${torch[@]}"; do
        start "$version-$kind-auto" simulate_models "$version" "$kind" auto
        start "$version-$kind-off" simulate_models "$version" "$kind" off
    done
done
for version in "${PRE_RELEASES[@]}"; do start "$version-jemalloc-external" simulate "$version" jemalloc external; done
for version in "${VERSIONS[@]}" "${PRE_RELEASES[@]}"; do
    start "$version-custom-auto" simulate_models "$version" custom auto
    start "$version-custom-off" simulate_models "$version" custom off
    start "$version-large-auto" simulate_models "$version" large auto
done
# sub_start.sh and `nvflare poc start` start a POC system with both modes, in two versions.
glibc=poc_by_kits jemalloc=poc_by_command
for version in "${VERSIONS[@]}"; do
    LEAK=20 ROUNDS=$LEAK_ROUNDS start "$version-poc-glibc" $glibc "$version" glibc
    start "$version-poc-jemalloc" $jemalloc "$version" jemalloc built # kits only
    glibc=poc_by_command jemalloc=poc_by_kits
done
start "${VERSIONS[0]}-built-jemalloc" poc_by_kits "${VERSIONS[0]}" jemalloc built
start "${VERSIONS[0]}-slurm-jemalloc" poc_by_kits "${VERSIONS[0]}" jemalloc none
start "${VERSIONS[0]}-apptainer-jemalloc" poc_by_kits "${VERSIONS[0]}" jemalloc apptainer

check "a job that never ends is killed at its limit, and its stacks and logs are reported" hang_is_reported
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
    check "nvflare $version: a message that was sent, or could not be sent, is freed without a collection" frees_sent "$version"
done
for version in "${VERSIONS[@]}" "${PRE_RELEASES[@]}"; do
    [[ $version != 2.7.* ]] || continue # has no Collab API
    check "nvflare $version: a leak in a method of the Collab API is found by its calls" collab_leak_is_found "$version"
done
check "a leak in a round of histogram-based XGBoost is found by its rounds" xgboost_leak_is_found
wait
for version in "${VERSIONS[@]}" "${PRE_RELEASES[@]}"; do
    check "nvflare $version: a controller of the program reads the last result and the global model at its end" \
        models_are_equal "$version-custom-auto" "$version-custom-off" 6
    check "nvflare $version: a server whose clients train holds two models" holds_two_models "$version-large-auto"
done
for version in "${PRE_RELEASES[@]}"; do
    check "nvflare $version, jemalloc: a simulator job with external trainers marks each stage of each round once" \
        completed "$version-jemalloc-external" jemalloc external
done
for version in "${VERSIONS[@]}"; do
    for mode in glibc jemalloc; do
        for trainers in $(trainers_of "$version" $mode); do
            name=$version-$mode-$trainers
            check "nvflare $version, $mode: a simulator job with $trainers trainers marks each stage of each round once" \
                completed "$name" $mode "$trainers"
            check "nvflare $version, $mode: the markers of the job's processes are in log.txt once and on the terminal once, $trainers trainers" \
                in_logs_once "$name"
            check "nvflare $version, $mode: markers and messages of that job contain no token, $trainers trainers" keeps_secrets "$name"
        done
        name=$version-poc-$mode
        if [ $mode = glibc ]; then rounds=$LEAK_ROUNDS; else rounds=$ROUNDS; fi
        ROUNDS=$rounds check "nvflare $version, $mode: a POC system starts, runs a job with all markers, and stops" \
            completed "$name" $mode external
        check "nvflare $version, $mode: processes of the POC job have tokens in argv or environ" had_secrets "$name"
        check "nvflare $version, $mode: no such token appears in a marker or a message" keeps_secrets "$name"
    done
    check "nvflare $version: the server of cyclic and cross-site evaluation marks each result and each reported round" \
        workflows_are_marked "$version-workflows"
    check "nvflare $version: each global model of four workflows is the same whether or not the hooks drop values" \
        models_are_equal "$version-known-auto" "$version-known-off" 15
    check "nvflare $version: each model of Swarm is the same whether or not the hooks drop values" \
        models_are_equal "$version-swarm-auto" "$version-swarm-off" 4
    check "nvflare $version: so is each of FedAvg with PyTorch's tensors and of FedOpt" \
        models_are_equal "$version-torch-auto" "$version-torch-off" 9
done
check "nvflare ${VERSIONS[0]}: the report says the same of each trainer from the server's logs as from the markers" \
    server_knows_the_sites "${VERSIONS[0]}-poc-glibc"
check "nvflare ${VERSIONS[0]}: kits that FlarenaBuilder has built start alone, and run a job with all markers" \
    completed "${VERSIONS[0]}-built-jemalloc" jemalloc external
check "nvflare ${VERSIONS[0]}: a job of NVFlare's Slurm launcher runs with all markers" \
    completed "${VERSIONS[0]}-slurm-jemalloc" jemalloc external
check "nvflare ${VERSIONS[0]}: forward_env passes the library and the settings into a container of the Slurm launcher" \
    completed "${VERSIONS[0]}-apptainer-jemalloc" jemalloc external
finish
