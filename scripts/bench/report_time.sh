#!/usr/bin/env bash
# Measures `flarena report` on the markers of a large job, eight stages per round.
#
#   scripts/bench/report_time.sh [SITES] [ROUNDS]
#
# Prints size, time and peak memory.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
sites=${1:-100}
rounds=${2:-1000}
flarena=$root/target/release/flarena
[ -x "$flarena" ] || (cd "$root" && cargo build --release --quiet -p flarena-cli)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 "$root/scripts/bench/markers.py" --sites "$sites" --rounds "$rounds" >"$scratch/markers.jsonl"

python3 - "$flarena" "$scratch" "$sites" "$rounds" <<'PYTHON'
import os
import resource
import subprocess
import sys
import time

flarena, scratch, sites, rounds = sys.argv[1:]
markers = os.path.join(scratch, "markers.jsonl")
page = os.path.join(scratch, "report.html")
command = [flarena, "report", "--html", page, markers]
times = []
for _ in range(3):
    start = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    times.append(time.monotonic() - start)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
size = os.path.getsize(markers) / 1e6
print(f"report: {sites} sites x {rounds} rounds, {size:.0f} MB of markers: {min(times):.2f} s with its"
      f" page of {os.path.getsize(page) / 1e6:.1f} MB (best of 3), peak {peak:.0f} MB")
PYTHON
