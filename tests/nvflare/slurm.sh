#!/usr/bin/env bash
# NVFlare's Slurm launcher on a real cluster of one node: sbatch runs NVFlare's own batch script, with the settings of
# docs/recipes/nvflare.md and without. apptainer alone is a stand-in, which no package of Debian has.
#
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/nvflare/systems.sh
. "$ROOT/tests/nvflare/systems.sh"
# shellcheck source=tests/nvflare/cluster.sh
. "$ROOT/tests/nvflare/cluster.sh"

VERSION=2.9.0
CLUSTER=$SCRATCH/cluster

if [ -z "${IN_SLURM-}" ]; then
    enter_slurm "$0"
    skip "a job of NVFlare runs on a real Slurm" "$REASON"
    finish
    exit
fi

# Ends the daemons, too: their command lines or environments contain the folder.
trap 'kill_leftovers; rm -rf "$SCRATCH"' EXIT
SCHEDULER= # sbatch and the others are on the PATH

process_of() { # FOLDER MODULE: the Python process that runs this module of the kit for Slurm
    pgrep -f "python.* -m nvflare\.private\.fed\.app\.client\.$2 .*$1/slurm/kit"
}

# While the job runs, what the doctor says of the job and of the site.
examine_job() { # FOLDER
    local job site
    until job=$(process_of "$1" worker_process); do sleep 0.3; done
    site=$(process_of "$1" client_train)
    echo "$site $job" >"$1/processes"
    for process in "$job" "$site"; do
        "$ROOT/target/release/flarena" doctor "$process" >"$1/doctor.$process" || true
    done
}
job_is_found() { # NAME: by the doctor, with the remedy for Slurm, from both processes
    local folder=$SCRATCH/$1 site job remedy='-> export LD_PRELOAD and the settings in slurm.yaml (job_launcher: setup)'
    [ "$(cat "$folder/status")" -eq 0 ] || { explain_failure "$1"; return 1; }
    read -r site job <"$folder/processes"
    cat "$folder"/doctor.*
    grep -qF "libflarena.so is not loaded, but process $site, which launched this job, has it" "$folder/doctor.$job"
    grep -qF "this process has launched job process $job without libflarena.so" "$folder/doctor.$site"
    [ "$(cat "$folder"/doctor.* | grep -cF -e "$remedy")" -eq 2 ]
}
without_settings() { # FOLDER VERSION MODE
    examine_job "$1" &
    poc_by_kits "$@" bare
}

"$ROOT/scripts/venv.sh" $VERSION >/dev/null || { fail "nvflare $VERSION can be installed"; finish; exit; }
configure_slurm "$CLUSTER"
check "a cluster of one node starts" start_slurm "$CLUSTER"
for sandbox in none apptainer parent; do start $sandbox poc_by_kits $VERSION jemalloc $sandbox; done
start bare without_settings $VERSION jemalloc
wait
check "a job of NVFlare on Slurm runs with all markers" completed none jemalloc external
check "a job in a container of Slurm runs with all markers" completed apptainer jemalloc external
check "a site that is a job of Slurm runs its job with all markers" completed parent jemalloc external
check "the doctor finds a job that Slurm runs without the library, and names the settings" job_is_found bare
finish
