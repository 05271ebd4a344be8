"""k. Programs from the field whose blocks are mostly below the size of a large block."""

import os

import build
import fl_rounds
import measure
from model import Column, Failed, Variant
from places import ROOT

TITLE = "Programs from the field"
COLUMNS = (
    Column("peak_mb", "peak MB"),
    Column("mean_mb", "mean MB"),
    Column("dropped_mb", "between rounds MB"),
    Column("rest_mb", "at rest MB"),
    Column("cpu_s", "CPU s", digits=2),
    Column("faults_k", "thousand faults"),
)
CONTENDERS = (
    "glibc",
    "glibc-fixed",
    "jemalloc",
    "jemalloc-bg",
    "mimalloc3",
    "tcmalloc",
    "tbbmalloc",
    "flarena-glibc",
    "flarena-jemalloc",
)


def variants(options):
    repeats = options.repeats(1, 3)
    title = "joblib: 1500 arrays of 400 KB in each round, 2 workers, the parent"
    sweep = ["joblib_rounds.py", "--rounds", "6", "--arrays", "1500", "--idle", "0", "--final-idle", "5"]
    yield Variant("joblib", title, COLUMNS, run_of(sweep, build.python_with_joblib), repeats, CONTENDERS)
    title = "PyTorch service with a thread for each request"
    yield Variant("torch", title, COLUMNS, run_of(["torch_threads.py"], lambda: fl_rounds.PYTHON), repeats, CONTENDERS)


def run_of(command, python):
    program, *arguments = command
    checksums = set()

    def run(contender):
        done = measure.run(contender, [python(), os.path.join(ROOT, "bench", program), *arguments])
        checksums.add(done.reported["checksum"])
        if len(checksums) != 1:
            raise Failed("the result differs from the other contenders: memory was corrupted")
        return {
            "peak_mb": done.peak_bytes / measure.MB,
            "mean_mb": done.mean_bytes / measure.MB,
            "dropped_mb": done.reported["dropped_bytes"] / measure.MB,
            "rest_mb": done.reported["rest_bytes"] / measure.MB,
            "cpu_s": done.cpu_s,
            "faults_k": done.faults / 1000,
        }

    return run
