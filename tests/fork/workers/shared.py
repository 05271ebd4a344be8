"""Shared by the programs of this folder: the objects that workers inherit, the work of a round, and the PSS of all."""

import os

try:
    import flarena
except ImportError:
    flarena = None

ROUNDS = 6


def table():
    """About 100 MB of small objects."""
    return [{"id": i, "weights": [i, i + 1, float(i)], "name": f"row {i}"} for i in range(300_000)]


def work(round_number):
    """Blocks of some MB, and a marker if the run has markers."""
    blocks = [bytearray(b"x") * (4 << 20) for _ in range(6)]
    if flarena and os.environ.get("MARKS"):
        flarena.mark("worked", round=round_number)
    return len(blocks)


def own_pss_mb(pid):
    with open(f"/proc/{pid}/smaps_rollup") as rollup:
        return next(int(line.split()[1]) for line in rollup if line.startswith("Pss:")) // 1024


def children(pid):
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/children") as children_of_thread:
            yield from children_of_thread.read().split()


def pss_mb(pid):
    """Of a process and its descendants."""
    return own_pss_mb(pid) + sum(pss_mb(child) for child in children(pid))
