"""a. NumPy FL rounds: peak, idle, CPU and round time for four shapes of model."""

import os
import subprocess

import measure
from model import Column, Failed, Variant
from places import BUILD, ROOT

TITLE = "NumPy FL rounds"
PROGRAM = os.path.join(ROOT, "bench", "fl_rounds.py")
PYTHON = "/usr/bin/python3"
COLUMNS = (
    Column("peak_mb", "peak MB"),
    Column("idle_mb", "idle MB"),
    Column("idle_between_mb", "idle between rounds MB"),
    Column("cpu_s", "CPU s", digits=2),
    Column("round_s", "round s", digits=2),
    Column("faults_k", "thousand faults"),
)
MODELS = ("64x8MB", "512x1MB", "8x64MB", "mix:512MB")


def variants(options):
    models = options.names("models") or (("16x8MB",) if options.quick else MODELS)
    final_idle_s = 2.0 if options.quick else 6.0
    for model in models:
        arguments = ["--rounds", str(options.rounds or 3), "--idle", "1.0", "--final-idle", str(final_idle_s)]
        yield Variant(
            model.replace(":", "-"),
            f"NumPy FL rounds, model of {model}",
            COLUMNS,
            run_of(model, arguments),
            options.repeats(1, 3),
        )


def wire_of(model):
    """Path of the serialized model, written on first use."""
    path = os.path.join(BUILD, f"wire-{model.replace(':', '-')}")
    if not os.path.exists(path):
        subprocess.run([PYTHON, PROGRAM, "--wire", path, "--make", model], check=True)
    return path


def run_of(model, arguments):
    checksums = set()  # must be equal under all allocators

    def run(contender):
        done = measure.run(contender, [PYTHON, PROGRAM, "--wire", wire_of(model), *arguments])
        checksums.add(done.reported["checksum"])
        if len(checksums) != 1:
            raise Failed("the checksum differs from the other contenders: memory was corrupted")
        return round_values(done)

    return run


def round_values(done):
    """Column values of a program that runs in rounds."""
    return {
        "peak_mb": done.peak_bytes / measure.MB,
        "idle_mb": done.reported["idle_bytes"] / measure.MB,
        "idle_between_mb": done.reported["idle_between_bytes"] / measure.MB,
        "mean_mb": done.mean_bytes / measure.MB,
        "cpu_s": done.cpu_s,
        "faults_k": done.faults / 1000,
        "round_s": done.reported["round_s"],
    }
