#!/usr/bin/env bash
# NVFlare's Docker launcher: server and site are containers, and NVFlare itself starts one for each job, with
# docker/study_runtime.yaml and with an image without flarena.
cd "$(dirname "$0")" || exit 1
# shellcheck source=tests/lib.sh
. ../lib.sh
# shellcheck source=tests/docker/images.sh
. ./images.sh

RUN=flarena-test-run=$$
NETWORK=flarena-test-$$
FEDERATION=$SCRATCH/federation
KITS=$FEDERATION/kits
ROUNDS=3
WITH=flarena-test:nvflare-flarena
WITHOUT=flarena-test:nvflare

containers() { docker ps -aq --filter "network=$NETWORK" "$@"; } # [FILTER...]
trap 'containers | xargs -r docker rm -f >/dev/null 2>&1; docker network rm "$NETWORK" >/dev/null 2>&1; rm -rf "$SCRATCH"' EXIT

make_images() { build_release && "$ROOT/scripts/docker/nvflare-image.sh" && build_image $WITHOUT $WITH; }

# The kits of server and site for Docker. The parents have flarena. A job sees the folder local of its kit.
prepare_kits() {
    local port
    port=$(free_ports 1)
    mkdir -p "$KITS"
    sed "s/8002/$port/" federation/project.yml >"$FEDERATION/project.yml"
    printf '%s\n' "runtime: docker" "parent: {docker_image: '$WITH', network: $NETWORK}" >"$FEDERATION/docker.yaml"
    # shellcheck disable=SC2016  # the container's shell expands it
    inside nvflare -v "$FEDERATION:/work" -w /work -- sh -ec '
        nvflare() { python3 -m nvflare.cli "$@"; }
        nvflare provision -p project.yml -w /work
        for name in server1 site-1; do
            nvflare deploy prepare "federation/prod_00/$name" --config docker.yaml --output "kits/$name"
        done
        python3 -c "import numpy; numpy.save(\"/work/kits/server1/local/model.npy\", numpy.zeros(1 << 22, numpy.float32))"'
    run_jobs_in server1 $WITH
    run_jobs_in site-1 $WITH
}
run_jobs_in() { # NAME IMAGE: the jobs of this server or site
    sed "s|image: .*|image: $2|" "$ROOT/docker/study_runtime.yaml" >"$KITS/$1/local/study_runtime.yaml"
}

start_parents() {
    local name
    docker network create "$NETWORK" >/dev/null
    for name in server1 site-1; do
        # A container cannot be named twice.
        docker rm -f $name >/dev/null 2>&1
        "$KITS/$name/startup/start_docker.sh" >"$SCRATCH/$name.log" 2>&1 </dev/null &
    done
    eventually parents_run || { tail -n 20 "$SCRATCH"/*.log; return 1; }
}
parents_run() { [ "$(containers | wc -l)" -eq 2 ]; }

run_job() {
    submit "$NETWORK" "$FEDERATION/federation/prod_00/operator@flarena.test" -- \
        /var/tmp/nvflare/workspace/local/model.npy $ROUNDS site-1 >"$SCRATCH/job" 2>&1
    cat "$SCRATCH/job"
    grep -qx 'ended FINISHED:COMPLETED' "$SCRATCH/job" || { tail -n 40 "$SCRATCH"/*.log; return 1; }
}

# The markers of a site are in the job's folder. NVFlare packs the server's into its job store.
all_processes_marked() {
    local name stored=$SCRATCH/stored files
    python3 -m zipfile -e "$KITS"/server1/jobs-storage/*/workspace "$stored/server1"
    cp -r "$KITS/site-1" "$stored"
    for name in server1:SJ site-1:CJ,TR; do
        mapfile -t files < <(find "$stored/${name%:*}" -name 'rss-*.jsonl')
        processes_are "${name#*:}" "${files[@]}"
    done
    [ "$(python3 programs/markers.py sends "${files[@]}")" = "0 1 2" ]
}

process_of() { # NAME: the first process of the container
    docker inspect -f '{{.State.Pid}}' "$(containers --filter "name=^$1")"
}
job_is_found() {
    local job site process command deadline=$((SECONDS + 200)) remedy='-> name an image with flarena in local/study_runtime.yaml (container: image,'
    run_jobs_in site-1 $WITHOUT
    run_job >/dev/null 2>&1 &
    command=$!
    until job=$(process_of site-1-) 2>/dev/null && [ "$job" -gt 0 ]; do
        [ $SECONDS -lt $deadline ] || { echo "NVFlare starts no container"; return 1; }
        sleep 0.3
    done
    site=$(process_of 'site-1$')
    for process in "$job" "$site"; do "$ROOT/target/release/flarena" doctor "$process" || true; done >"$SCRATCH/doctor"
    wait $command
    cat "$SCRATCH/doctor"
    grep -qF "libflarena.so is not loaded, but process $site, which launched this job, has it" "$SCRATCH/doctor"
    grep -qF "this process has launched job process $job without libflarena.so" "$SCRATCH/doctor"
    [ "$(grep -cF -e "$remedy" "$SCRATCH/doctor")" -eq 2 ]
}

if ! timeout 20 docker info >/dev/null 2>&1; then
    skip "NVFlare's Docker launcher starts jobs with flarena" "no Docker engine answers"
    finish
    exit
fi
chmod 755 "$SCRATCH"
check "the images with nvflare, and with nvflare and flarena, build" make_images
check "nvflare prepares the kits of a server and a site for Docker" prepare_kits
check "their start scripts start two containers" start_parents
check "a job runs in containers that NVFlare starts" run_job
check "the markers of each process of these containers name jemalloc, each send once" all_processes_marked
check "the doctor finds a job in an image without flarena, and names the setting" job_is_found
finish
