#!/usr/bin/env bash
# Runs the tests that are too long for scripts/test.sh, and ends with `N passed, N failed, N skipped`; exits 1 when any
# failed.
#
#   scripts/soak.sh                    every part
#   scripts/soak.sh stress             only these parts
#   scripts/soak.sh 60 stress          60 minutes for each part of variable length (10 by default)
#   scripts/soak.sh --list             the parts, and how long they take on 2 idle cores
#
# A part prints results like a suite: `ok - sentence` and so on.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=scripts/counted.sh
. scripts/counted.sh

# NAME|COMMAND|TIME. The command may read $MINUTES.
# shellcheck disable=SC2016  # the part's shell expands it
PARTS=(
    'foreign-cpython|FOREIGN=whole tests/foreign/run.sh cpython|30 min'
    'foreign-numpy|FOREIGN=whole tests/foreign/run.sh numpy|20 min'
    'foreign-nvflare|FOREIGN=whole tests/foreign/run.sh nvflare|1 h'
    'foreign-stress_ng|FOREIGN=whole tests/foreign/run.sh stress_ng|15 min'
    'foreign-servers|FOREIGN=whole tests/foreign/run.sh redis postgres|1 h'
    'foreign-chromium|FOREIGN=whole tests/foreign/run.sh chromium|10 min'
    'foreign-programs|FOREIGN=whole tests/foreign/run.sh gcc git node sqlite|40 min'
    'nvflare|NVFLARE_VERSIONS=latest tests/nvflare/run.sh|10 min: the newest NVFlare, pre-releases included'
    'slurm|tests/nvflare/slurm.sh|5 min'
    'docker-launcher|tests/docker/launcher.sh|5 min'
    'recipes|RECIPES=whole tests/recipes/run.sh|10 min'
    'install|tests/package/soak.sh|20 min, 2 GB of disk'
    'trainers|tests/python/soak.sh|15 min, 6 GB of disk'
    'arm64|scripts/arm64.sh|2 h'
    'stress|tests/stress/soak.sh $MINUTES|any: 40 min are 28 million calls'
    'faults|tests/faults/soak.sh $MINUTES|30 min, then any'
    'workers|tests/fork/workers.sh|20 min, 6 GB of disk'
    'limits|tests/faults/machine.sh|1 h, at most 6'
    'endurance|tests/endurance/soak.sh $MINUTES|20 min, and twice any'
    'fuzz|fuzz/soak.sh $MINUTES|6 times any'
    'models|RUSTFLAGS="--cfg loom -C debug-assertions" cargo test --release --locked -p flarena-sys --test loom --target-dir target/loom|1 min'
    'sanitize|tests/sanitize/soak.sh|1 h'
    'properties|PROPTEST_CASES=100000 cargo test --workspace -- any_ keep_their_contents refusals_of threads_lose|3 h'
)

list_parts() {
    local part name command time
    for part in "${PARTS[@]}"; do
        IFS='|' read -r name command time <<<"$part"
        printf '%-20s %-8s %s\n' "$name" "$time" "$command"
    done
}

part_named() { # NAME: its row
    local part
    for part in "${PARTS[@]}"; do
        [ "${part%%|*}" != "$1" ] || { echo "$part"; return; }
    done
    return 1
}

if [ "${1-}" = --list ]; then
    list_parts
    exit
fi
export MINUTES=10
if [[ ${1-} =~ ^[0-9]+$ ]]; then
    MINUTES=$1
    shift
fi
[ $# -gt 0 ] || mapfile -t names < <(printf '%s\n' "${PARTS[@]%%|*}")
[ $# -eq 0 ] || names=("$@")
for name in "${names[@]}"; do
    part_named "$name" >/dev/null || { printf 'no such part: %s; there are:\n' "$name"; list_parts; exit 1; }
done
cargo build --release || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }
for name in "${names[@]}"; do
    IFS='|' read -r _ command _ < <(part_named "$name")
    run_counted part "$name" bash -c "$command"
done
finish_counted
