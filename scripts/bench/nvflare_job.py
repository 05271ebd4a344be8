"""c. NVFlare 2.9 job: summed PSS of all its processes, CPU and wall time."""

import glob
import os
import pathlib
import re
import subprocess
import tempfile

import build
import measure
import tree
from model import Column, Failed, Variant
from places import BUILD, ROOT

TITLE = "NVFlare 2.9 job, 2 sites, external trainers"
PROGRAM = os.path.join(ROOT, "bench", "nvflare", "job.py")
COLUMNS = (
    Column("mean_mb", "mean PSS MB"),
    Column("peak_mb", "peak PSS MB"),
    Column("cpu_s", "CPU s", digits=1),
    Column("wall_s", "wall s", digits=1),
    Column("faults_k", "thousand faults"),
)
CONTENDERS = (
    "glibc",
    "nvflare-advice",
    "glibc-fixed",
    "glibc-fixed-rounds",
    "jemalloc",
    "jemalloc-rounds",
    "tcmalloc",
    "tcmalloc-rounds",
    "flarena-glibc",
    "flarena-glibc-rounds",
    "flarena-jemalloc",
    "flarena-jemalloc-rounds",
)
MODELS = ("16x8MB", "64x8MB")
NVFLARE = "2.9.0"


def variants(options):
    models = options.names("models") or (("16x8MB",) if options.quick else MODELS)
    rounds = options.rounds or (2 if options.quick else 4)
    for model in models:
        title = f"NVFlare {NVFLARE} job, 2 sites, external trainers, model of {model}, {rounds} rounds"
        yield Variant(model, title, COLUMNS, run_of(model, rounds), options.repeats(1, 3), CONTENDERS)


def python():
    """An interpreter with NVFlare."""
    return build.python(NVFLARE)


def model_file(shape):
    path = os.path.join(BUILD, f"model-{shape}.npz")
    if not os.path.exists(path):
        subprocess.run([python(), PROGRAM, "--model", path, "--make", shape], check=True)
    return path


def run_of(shape, rounds):
    results = set()

    def run(contender):
        interpreter, model = python(), model_file(shape)
        with tempfile.TemporaryDirectory(prefix="job-", dir=BUILD, ignore_cleanup_errors=True) as workspace:
            command = [interpreter, PROGRAM, "--model", model, "--workspace", workspace, "--rounds", str(rounds)]
            done = measure.run(contender, command, sampler=tree.PssSampler, timeout_s=300)
            results.add(last_round(workspace, done.output, rounds))
        if len(results) != 1:
            raise Failed("the model differs from the other contenders: memory was corrupted")
        return {
            "mean_mb": done.mean_bytes / measure.MB,
            "peak_mb": done.peak_bytes / measure.MB,
            "cpu_s": done.cpu_s,
            "wall_s": done.wall_s,
            "faults_k": done.faults / 1000,
        }

    return run


def last_round(workspace, output, rounds):
    """The mean that the trainers printed in the last round. It shows that the job completed with equal numbers."""
    paths = glob.glob(workspace + "/**/*log*.txt", recursive=True)
    logs = [pathlib.Path(path).read_text(errors="replace") for path in paths]
    mean = rf"BENCH round {rounds - 1}: mean ([0-9.]+)"
    found = {value for text in [output, *logs] for value in re.findall(mean, text)}
    if len(found) != 1:
        raise Failed(f"the last round was not completed: {sorted(found)}")
    return found.pop()
