"""b. PyTorch (CPU) FL rounds: peak, idle, CPU and training time of a 50 M parameter transformer."""

import os
import subprocess

import fl_rounds
import measure
from model import Column, Failed, Variant
from places import BUILD, ROOT

TITLE = "PyTorch FL rounds (CPU)"
PROGRAM = os.path.join(ROOT, "bench", "torch_rounds.py")
COLUMNS = (*fl_rounds.COLUMNS, Column("train_s", "training s per round", goal=1.05, digits=2))


def add_arguments(group):
    group.add_argument("--steps", type=int, metavar="N", help="b: training steps per round (default 6)")


def variants(options):
    rounds, steps = options.rounds or (2 if options.quick else 3), options.steps or (2 if options.quick else 6)
    arguments = ["--rounds", str(rounds), "--steps", str(steps), "--threads", str(min(os.cpu_count() or 1, 8))]
    arguments += ["--idle", "1.0", "--final-idle", "2.0" if options.quick else "6.0"]
    title = f"PyTorch FL rounds, transformer of 50 M parameters, {rounds} rounds of {steps} steps"
    yield Variant(f"{rounds}x{steps}", title, COLUMNS, run_of(arguments), options.repeats(1, 3))


def wire_file():
    """Path of the serialized state dict, written on first use."""
    path = os.path.join(BUILD, "wire-transformer")
    if not os.path.exists(path):
        subprocess.run([fl_rounds.PYTHON, PROGRAM, "--wire", path, "--make"], check=True)
    return path


def run_of(arguments):
    """A function that runs the rounds under a contender and checks that the loss is equal under all of them."""
    losses = set()

    def run(contender):
        extra = {"OMP_WAIT_POLICY": "passive"}  # otherwise the CPU time of spinning threads is measured
        done = measure.run(contender, [fl_rounds.PYTHON, PROGRAM, "--wire", wire_file(), *arguments], extra)
        losses.add(done.reported["checksum"])
        if len(losses) != 1:
            raise Failed("the loss differs from the other contenders: memory was corrupted")
        return {**fl_rounds.round_values(done), "train_s": done.reported["train_s"]}

    return run
