# shellcheck shell=bash disable=SC2154  # part of run.sh
# Users copy the files of the recipes. Each file is given to the program that reads it.

SHOWN=$SCRATCH/shown
MANIFESTS=$ROOT/docker/kubernetes

# The launcher has another path here. systemd must report nothing.
units_are_right() {
    command -v systemd-analyze >/dev/null || { echo "no systemd-analyze"; return 77; }
    sed -i "s|/usr/share/flarena/|$ROOT/|" "$SHOWN"/*.service
    [ -z "$(systemd-analyze verify "$SHOWN"/*.service "$SHOWN"/*.timer 2>&1 | tee /dev/stderr)" ]
}

unpack_promtool() (
    mkdir "$SCRATCH/prometheus" && cd "$SCRATCH/prometheus" && apt-get -q download prometheus &&
        dpkg -x ./*.deb "$ROOT/build/promtool"
)
# Unpacked below build/, not installed: the package starts a server.
promtool() {
    local tool=$ROOT/build/promtool/usr/bin/promtool
    [ -x "$tool" ] || unpack_promtool >/dev/null 2>&1 ||
        { echo "no promtool: the package prometheus cannot be downloaded"; return 77; }
    "$tool" "$@"
}
rules_hold() {
    cp "$HERE/rules_test.yaml" "$SHOWN/"
    promtool check rules "$SHOWN/flarena.rules.yaml" || return
    promtool test rules "$SHOWN/rules_test.yaml"
}

# The report writes each metric of the rules and of the page.
metrics_exist() {
    local name
    grep -ohE '\bflarena_[a-z_]+' "$ROOT/docs/recipes/prometheus.md" | sort -u >"$SCRATCH/metrics"
    [ "$(wc -l <"$SCRATCH/metrics")" -ge 10 ]
    while read -r name; do
        grep -qw "$name" "$ROOT/src/cli/report/output/prometheus.rs" || { echo "no metric $name"; return 1; }
    done <"$SCRATCH/metrics"
}

matches_schema() {
    kubernetes_venv
    "${PYTHON%/*}/kubernetes-validate" --strict "$MANIFESTS"/{daemonset,huge-pages,pod}.yaml
}

# Folders stand for the image and the node. The second run must leave no extra file.
daemonset_installs() {
    kubernetes_venv
    local image=$SCRATCH/image node=$SCRATCH/node
    mkdir -p "$image/lib" "$node"
    cp "$LIB" "$image/lib/libflarena.so"
    "$PYTHON" -c 'import sys, yaml
spec = yaml.safe_load(open(sys.argv[1]))["spec"]["template"]["spec"]
print(spec["initContainers"][0]["command"][2])' "$MANIFESTS/daemonset.yaml" |
        sed "s|/opt/flarena|$image|g; s|/node|$node|g" >"$SCRATCH/install"
    without_preload sh "$SCRATCH/install" && without_preload sh "$SCRATCH/install"
    cmp "$LIB" "$node/current/lib/libflarena.so"
    find "$node" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | sed 's/flarena-[0-9.]*$/flarena-VERSION/' | xargs
}

# A process marks, logrotate moves the file, the process marks again: no marker is lost, and the report reads both files.
rotates() {
    need logrotate || { echo "no logrotate"; return 77; }
    local logs=$SCRATCH/logs
    mkdir -p "$logs" && chmod 755 "$logs"
    sed "s|/var/log/flarena|$logs|; s|su nvflare nvflare|su $(id -un) $(id -gn)|" "$SHOWN/flarena" >"$SCRATCH/rule"
    chmod 644 "$SCRATCH/rule"
    LOGS=$logs RULE=$SCRATCH/rule STATE=$SCRATCH/rotated in_mode glibc NVFLARE_CLIENT_MEMORY_PROFILE=1 \
        FLARENA_MARKER_FILE="$logs/site-1.jsonl" PYTHONPATH="$ROOT/src/python" python3 "$HERE/rotates.py" 2>/dev/null
    "$ROOT/target/release/flarena" report --json "$logs"/*.jsonl* >"$SCRATCH/report.json"
    grep -q '"rounds": *6' "$SCRATCH/report.json" || { head -c 2000 "$SCRATCH/report.json"; return 1; }
}

# The trainer of docs/recipes/pytorch.md with a smaller model and fewer rounds.
trainer() {
    has_torch
    sed 's/= 2048, 12/= 256, 2/' "$SHOWN/train.py" >"$SCRATCH/train.py"
    limited trainer launched glibc --marker-file "$SCRATCH/train.jsonl" -- "$PYTHON" "$SCRATCH/train.py" || return
    grep -c ' MB resident$' "$JOB/output"
    sed -n '/"periodic"/d; s/.*"round":\([0-9]*\),"stage":"\([a-z]*\)".*/\1 \2/p' "$SCRATCH/train.jsonl"
}

mkdir -p "$SHOWN"
check "the pages contain files" python3 "$HERE/shown.py" "$SHOWN" "$ROOT/README.md" "$ROOT"/docs/recipes/*.md
check_output "the trainer of the PyTorch page runs, and marks each stage of each round" \
    $'2\n0 loaded\n0 trained\n0 validated\n1 loaded\n1 trained\n1 validated\n1 exit' trainer
check "systemd reports nothing about the units" units_are_right
check "the Prometheus rules alert for a process that grows, and for none that ended or is flat" rules_hold
check "the report writes each metric of the Prometheus page" metrics_exist
check "the DaemonSet and the pod match Kubernetes' schema" matches_schema
check_output "the DaemonSet's script installs the library on a node once" "current flarena-VERSION" daemonset_installs
check "logrotate moves the marker file of a running process, and the report reads all markers" rotates
