"""Measures the margin of `flarena report --request`: runs at the printed limit, and the smallest limit that lives.

    request.py [--model 16x8MB] [--rounds 8] [--runs 30] [--python /usr/bin/python3]

One run without a limit writes markers. The report reads them and prints the limit. Then the program runs under this
limit in a control group without swap, and under smaller ones until it is killed.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

import cgroup
from places import ROOT

MB = 1 << 20
STEP_MB = 5
LIBRARY = os.path.join(ROOT, "target", "release", "libflarena.so")
COMMAND = os.path.join(ROOT, "target", "release", "flarena")
PROGRAM = os.path.join(ROOT, "bench", "fl_rounds.py")


def run(command, allocator, markers=None, limit_mb=None):
    """True if the program ended by itself with status 0."""
    extra = {"LD_PRELOAD": LIBRARY, "FLARENA_ALLOCATOR": allocator, "FLARENA_NAME": "trainer"}
    if markers:
        extra |= {"NVFLARE_CLIENT_MEMORY_PROFILE": "1", "FLARENA_MARKER_FILE": markers}
    environment = {**os.environ, **extra}
    if limit_mb is None:
        return subprocess.run(command, env=environment, capture_output=True).returncode == 0
    with cgroup.limited(limit_mb * MB) as prefix:
        # The shell that enters the group runs without the library.
        variables = [f"{name}={value}" for name, value in extra.items()]
        return subprocess.run([*prefix, "env", *variables, *command], capture_output=True).returncode == 0


def printed_limit(markers):
    output = subprocess.run([COMMAND, "report", "--request=slurm", markers], capture_output=True, text=True, check=True)
    found = re.search(r"--mem=(\d+)M", output.stdout)
    assert found, output
    return int(found[1])


def smallest(command, allocator, limit_mb):
    """The smallest limit, in steps, at which three runs of three live."""
    while all(run(command, allocator, limit_mb=limit_mb - STEP_MB) for _ in range(3)):
        limit_mb -= STEP_MB
    return limit_mb


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="16x8MB")
    parser.add_argument("--rounds", default="8")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--python", default="/usr/bin/python3")
    options = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        wire, markers = os.path.join(scratch, "wire"), os.path.join(scratch, "markers.jsonl")
        subprocess.run([options.python, PROGRAM, "--wire", wire, "--make", options.model], check=True)
        command = [options.python, PROGRAM, "--wire", wire, "--rounds", options.rounds]
        command += ["--idle", "0.2", "--final-idle", "0"]
        for allocator in ("glibc", "jemalloc"):
            own = f"{markers}-{allocator}"
            assert run(command, allocator, own), "the program fails without a limit"
            limit_mb = printed_limit(own)
            killed = sum(not run(command, allocator, limit_mb=limit_mb) for _ in range(options.runs))
            least_mb = smallest(command, allocator, limit_mb)
            failed |= killed > 0 or limit_mb > 1.25 * least_mb
            ratio = f"{limit_mb / least_mb:.2f} x the smallest that lives, {least_mb} MB"
            print(f"{allocator}: {killed} of {options.runs} runs killed at {limit_mb} MB, {ratio}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
