"""i. Hibernation: what a process holds while it waits with its model, and what the next round takes longer."""

import statistics

import measure
import nvflare_job
import swap
import torch_rounds
from model import Column, Variant

TITLE = "Waiting with a model, where there is swap"
IDLE_S, SLOW_S, SHAPE = 30, 40, "16x8MB"
SWAP_MB = 4096
FIELD = ("flarena-glibc", "flarena-glibc-hibernate", "flarena-jemalloc", "flarena-jemalloc-hibernate")
WAITING = (
    Column("idle_mb", "idle between rounds MB"),
    Column("round_s", "round s", digits=2),
    Column("cpu_s", "CPU s", digits=1),
)
JOB = (
    Column("mean_mb", "mean PSS MB"),
    Column("wall_s", "wall s", digits=1),
    Column("cpu_s", "CPU s", digits=1),
)


def add_arguments(group):
    group.add_argument(
        "--slow", type=int, default=SLOW_S, metavar="S", help=f"i: the slow site trains S (default {SLOW_S})"
    )


def variants(options):
    rounds = options.rounds or 4
    title = f"PyTorch rounds, model kept, {IDLE_S} s between two"
    yield Variant("torch", title, WAITING, rounds_of(rounds), options.repeats(1, 3), FIELD)
    title = f"NVFlare job, model of {SHAPE}, one of two sites trains {options.slow} s, the other 1 s"
    yield Variant("job", title, JOB, job_of(rounds, options.slow), options.repeats(1, 3), FIELD)


def rounds_of(rounds):
    arguments = ["--keep", "--rounds", str(rounds), "--idle", str(IDLE_S), "--final-idle", str(IDLE_S)]
    play = torch_rounds.player(arguments)

    def run(contender):
        with swap.at_least(SWAP_MB):
            done = play(contender)
        after_a_pause = done.reported["rounds_s"][1:]
        return {
            "idle_mb": done.reported["idle_between_bytes"] / measure.MB,
            "round_s": statistics.median(after_a_pause),
            "cpu_s": done.cpu_s,
        }

    return run


def job_of(rounds, slow_s):
    play = nvflare_job.run_of(SHAPE, rounds, "--slow-s", str(slow_s), timeout_s=600)

    def run(contender):
        with swap.at_least(SWAP_MB):
            return play(contender)

    return run
