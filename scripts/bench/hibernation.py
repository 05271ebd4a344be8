"""i. Hibernation: resident memory of a process that waits with its model, and the duration of the next round.

Large blocks and the anonymous heap go to swap.
"""

import statistics

import measure
import nvflare_job
import swap
import torch_rounds
from model import Column, Variant

TITLE = "Hibernation: idle phases with swap"
IDLE_S, SLOW_S, SHAPE = 30, 40, "16x8MB"
SWAP_MB = 4096
CONTENDERS = ("flarena-glibc", "flarena-glibc-hibernate", "flarena-jemalloc", "flarena-jemalloc-hibernate")
ROUND_COLUMNS = (
    Column("idle_mb", "idle between rounds MB"),
    Column("round_s", "round s", digits=2),
    Column("cpu_s", "CPU s", digits=1),
)
JOB_COLUMNS = (
    Column("mean_mb", "mean PSS MB"),
    Column("wall_s", "wall s", digits=1),
    Column("cpu_s", "CPU s", digits=1),
)


def add_arguments(group):
    group.add_argument(
        "--slow",
        type=int,
        default=SLOW_S,
        metavar="S",
        help=f"i: training time of the slow site in seconds (default {SLOW_S})",
    )


def variants(options):
    rounds = options.rounds or 4
    title = f"PyTorch rounds, model kept, {IDLE_S} s between rounds"
    yield Variant("torch", title, ROUND_COLUMNS, run_rounds(rounds), options.repeats(1, 3), CONTENDERS)
    title = f"NVFlare job, model of {SHAPE}, one of two sites trains {options.slow} s, the other 1 s"
    yield Variant("job", title, JOB_COLUMNS, run_job(rounds, options.slow), options.repeats(1, 3), CONTENDERS)


def run_rounds(rounds):
    arguments = ["--keep", "--rounds", str(rounds), "--idle", str(IDLE_S), "--final-idle", str(IDLE_S)]
    run_torch = torch_rounds.runner(arguments)

    def run(contender):
        with swap.at_least(SWAP_MB):
            done = run_torch(contender)
        after_pause = done.reported["rounds_s"][1:]
        return {
            "idle_mb": done.reported["idle_between_bytes"] / measure.MB,
            "round_s": statistics.median(after_pause),
            "cpu_s": done.cpu_s,
        }

    return run


def run_job(rounds, slow_s):
    run_nvflare = nvflare_job.run_of(SHAPE, rounds, "--slow-s", str(slow_s), timeout_s=600)

    def run(contender):
        with swap.at_least(SWAP_MB):
            return run_nvflare(contender)

    return run
