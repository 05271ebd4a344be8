"""j. How often three programs are killed at a memory limit, for a sweep of limits, in a control group without swap."""

import os

import build
import cgroup
import fl_rounds
import measure
from model import Column, Failed, Variant
from places import ROOT

TITLE = "Killed at a memory limit"
ONLY = ("glibc", "glibc-trim", "jemalloc", "flarena-glibc", "flarena-jemalloc")
STEP_MB = 32


def add_arguments(group):
    group.add_argument("--limits", metavar="MB,..", help="j: the limits, instead of each program's own")
    group.add_argument("--program", metavar="NAME,..", help="j: only these of " + ", ".join(PROGRAMS))


def joblib_command(rounds):
    return [build.python_with_joblib(), os.path.join(ROOT, "bench", "joblib_rounds.py"), "--rounds", str(rounds)]


def fl_rounds_command(rounds):
    wire = fl_rounds.wire_of("128x1MB")
    pauses = ["--idle", "0.3", "--final-idle", "0"]
    return [fl_rounds.PYTHON, fl_rounds.PROGRAM, "--wire", wire, "--rounds", str(rounds), *pauses]


def records_command(rounds):
    return [fl_rounds.PYTHON, os.path.join(ROOT, "bench", "records.py"), "--rounds", str(rounds)]


# The title, the command, and the limits from one that every contender survives down to one that none does.
PROGRAMS = {
    "joblib": ("joblib, 600 arrays of 400 KB a round", joblib_command, range(224, 640, STEP_MB)),
    "fl_rounds": ("NumPy FL rounds, model of 128x1MB", fl_rounds_command, range(160, 544, STEP_MB)),
    "records": ("Python without NumPy, 200 MB of documents a round", records_command, range(160, 672, STEP_MB)),
}


def variants(options):
    rounds = options.rounds or 4
    runs = options.repeats(2, 4)
    for name in options.names("program") or PROGRAMS:
        title, command, limits = PROGRAMS[name]
        limits = sorted(options.numbers("limits") or limits, reverse=True)
        columns = [Column("survives_mb", "never killed from MB", goal=1.0)]
        columns += [Column(f"{limit}", f"{limit}") for limit in limits]
        title = f"Killed of {runs} runs by the limit in MB (cgroup {cgroup.version()}): {title}"
        yield Variant(name, title, tuple(columns), run_of(command(rounds), limits, runs), 1, only=ONLY)


def run_of(command, limits, runs):
    def run(contender):
        killed, values = {}, {}
        for limit_mb in limits:
            killed[limit_mb] = sum(is_killed(contender, command, limit_mb) for _ in range(runs))
            if killed[limit_mb] == runs:
                break  # as it is at each smaller limit
        for limit_mb in limits:
            if killed.get(limit_mb, runs):
                break
            values["survives_mb"] = limit_mb
        return {**values, **{str(limit): count for limit, count in killed.items()}}

    return run


def is_killed(contender, command, limit_mb):
    """True if the kernel killed the program or one of its workers, or if it had no memory."""
    try:
        with cgroup.limited(limit_mb * measure.MB) as prefix:
            measure.run(contender, command, prefix=prefix)
    except Failed as failure:
        if any(sign in str(failure) for sign in ("SIGKILL", "MemoryError", "TerminatedWorkerError")):
            return True
        raise
    return False
