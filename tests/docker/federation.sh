# shellcheck shell=bash disable=SC2154  # part of run.sh
# A federation from docker/compose.yaml: provisioned kits, a server, two clients and a network. One client is killed in
# the middle of a job and comes back.

FEDERATION=$SCRATCH/federation
PROJECT=flarena-test-$$
FIRST_JOB_ROUNDS=5
SECOND_JOB_ROUNDS=2
PATIENCE_SECONDS=300 # on an idle machine each step takes a tenth of it
export IMAGE=flarena-test:nvflare-flarena KITS=$FEDERATION/federation/prod_00

federation() { compose -p "$PROJECT" -f "$ROOT/docker/compose.yaml" "$@"; }

provision() {
    mkdir "$FEDERATION"
    inside nvflare -v "$ROOT/tests/docker/federation:/project:ro" -v "$FEDERATION:/work" -- sh -ec '
        python3 -m nvflare.cli provision -p /project/project.yml -w /work
        python3 -c "import numpy; numpy.save(\"/work/federation/prod_00/server1/model.npy\", numpy.zeros(1 << 22, numpy.float32))"'
}

# The stacks of all processes of the federation, and the logs of its containers.
report_federation() { # SECONDS
    local container logs=$SCRATCH/federation-logs processes=()
    mkdir -p "$logs"
    for container in $(docker ps -q --filter "label=com.docker.compose.project=$PROJECT") $(docker ps -q --filter "label=$RUN"); do
        docker logs --tail 40 "$container" >"$logs/$container.log" 2>&1
        mapfile -t -O "${#processes[@]}" processes < <(docker top "$container" -o pid | tail -n +2 | tr -d ' ')
    done
    report_hang docker-federation "$1" "$logs" "${processes[@]}"
    show_hang docker-federation
}

run_job() { # ROUNDS: the operator's kit submits it once both sites are connected
    local status=0 name=$PROJECT-operator
    submit "${PROJECT}_federation" "$KITS/operator@flarena.test" --name "$name" -- /kit/model.npy "$1" site-1 site-2 || status=$?
    # timeout kills the client of Docker's engine. The container and its processes still exist.
    if [ $status -eq 137 ]; then
        report_federation "$PATIENCE_SECONDS"
        docker rm -f "$name" >/dev/null
    fi
    return $status
}

wait_for_marker() { # SITE PATTERN
    local deadline=$((SECONDS + PATIENCE_SECONDS))
    until grep -qsE "$2" "$KITS/$1"/rss-*.jsonl; do
        [ $SECONDS -lt $deadline ] || {
            echo "$1 wrote no marker like $2 in $PATIENCE_SECONDS s"
            report_federation $PATIENCE_SECONDS
            return 1
        }
        sleep 0.5
    done
}

job_with_loss() {
    local job status=0 container
    container=$(federation ps -q site-2)
    run_job $FIRST_JOB_ROUNDS &
    job=$!
    wait_for_marker site-2 '"proc":"TR".*"site":"site-2","round":1,"stage":"send"'
    docker kill "$container" # compose is slower than one or two rounds
    sleep 2
    federation start site-2
    wait $job || status=$?
    # NVFlare calls a job with a lost client abnormal. The test is that the rounds go on.
    [ $status -eq 0 ] && wait_for_marker server1 "\"round\":$((FIRST_JOB_ROUNDS - 1)),\"stage\":\"after_aggregation\""
}

next_job() {
    local output
    output=$(run_job $SECOND_JOB_ROUNDS 2>&1)
    printf '%s\n' "$output"
    grep -qx 'ended FINISHED:COMPLETED' <<<"$output"
}

# The markers of each process of each site name its allocator.
all_processes_marked() {
    local site
    for site in server1:SJ,SP site-1:CJ,CP,TR site-2:CJ,CP,TR; do
        processes_are "${site#*:}" "$KITS/${site%:*}"/rss-*.jsonl
    done
}

report() {
    "$RELEASE/flarena" report "$KITS"/*/rss-*.jsonl >"$SCRATCH/report"
    cat "$SCRATCH/report"
    grep -q site-1 "$SCRATCH/report" && grep -q site-2 "$SCRATCH/report" && grep -qi server "$SCRATCH/report"
}

test_federation() {
    check "nvflare provisions a server and two clients" provision
    check "compose starts them on a network of their own" federation up -d
    check "a job goes on after one of its clients is killed" job_with_loss
    check "the client comes back and takes part in the next job" next_job
    check "the markers of each process of each site name jemalloc" all_processes_marked
    check_output "the other client marks each send of each round once" "0 1 2 3 4 0 1" \
        python3 programs/markers.py sends "$KITS"/site-1/rss-*.jsonl
    check "the killed client marks the rounds in which it took part, before and after its restart" lives_of_site_2
    check "flarena report merges the markers of all sites" report
}

lives_of_site_2() { # it was killed after its send of round 1, and before its send of the last round
    python3 programs/markers.py sends "$KITS"/site-2/rss-*.jsonl | tee "$SCRATCH/sends"
    grep -qE '^0 1( 2( 3)?)? 0 1$' "$SCRATCH/sends"
}

if ! docker image inspect $IMAGE >/dev/null 2>&1; then
    skip "a federation survives the loss of a client" "the image with nvflare could not be made"
elif ! compose version >/dev/null 2>&1; then
    skip "a federation survives the loss of a client" "neither docker compose nor docker-compose is installed"
else
    test_federation
    [ "$FAILED" -eq 0 ] || federation logs --no-color --tail=40
    federation down -t 1 >/dev/null 2>&1
fi
