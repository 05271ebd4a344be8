"""d. The largest model that completes five NumPy FL rounds under a memory limit, by bisection in a control group."""

import os

import cgroup
import fl_rounds
import measure
from model import Column, Failed, Variant

TITLE = "Largest model under a memory limit"
COLUMNS = (Column("model_mb", "largest model MB", "more", goal=1.0),)
ARRAY_MB = 8


def add_arguments(group):
    group.add_argument("--limit", metavar="MB", type=int, help="d: the memory limit (default 1024)")
    group.add_argument("--step", metavar="MB", type=int, help="d: resolution, a multiple of 8 (default 8)")


def variants(options):
    limit_mb = options.limit or 1024
    step_mb = options.step or (32 if options.quick else 8)
    rounds = options.rounds or 5
    place = f"{limit_mb} MB (cgroup {cgroup.version()})"
    title = f"Largest model, in arrays of {ARRAY_MB} MB, that completes {rounds} rounds in {place}"
    yield Variant(f"{limit_mb}", title, COLUMNS, run_of(limit_mb, step_mb, rounds), options.repeat or 1)


def run_of(limit_mb, step_mb, rounds):
    def run(contender):
        runs = 0

        def completes(steps):
            nonlocal runs
            runs += 1
            return completes_rounds(contender, steps * step_mb // ARRAY_MB, limit_mb, rounds)

        # Deserializing holds payload and arrays at once, so half the limit is the upper bound.
        steps = bisect(completes, low=limit_mb // 16 // step_mb, high=limit_mb // 2 // step_mb + 1)
        return {"model_mb": steps * step_mb, "runs": runs}

    return run


def bisect(completes, low, high):
    """The largest number in [low, high) that completes. All smaller ones must complete as well."""
    if not completes(low):
        raise Failed("the smallest model does not complete")
    while high - low > 1:
        middle = (low + high) // 2
        if completes(middle):
            low = middle
        else:
            high = middle
    return low


def completes_rounds(contender, arrays, limit_mb, rounds):
    wire = fl_rounds.wire_of(f"{arrays}x{ARRAY_MB}MB")
    command = [
        fl_rounds.PYTHON,
        fl_rounds.PROGRAM,
        "--wire",
        wire,
        "--rounds",
        str(rounds),
        "--idle",
        "0.3",
        "--final-idle",
        "0",
    ]
    try:
        with cgroup.limited(limit_mb * measure.MB) as prefix:
            measure.run(contender, command, prefix=prefix)
    except Failed as failure:
        if "SIGKILL" in str(failure) or "MemoryError" in str(failure):
            return False
        raise
    finally:
        os.remove(wire)  # each has hundreds of megabytes
    return True
