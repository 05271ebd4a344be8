"""Rounds of Apache Arrow: columns of numbers and texts that are made, sorted and dropped.

arrow.py SECONDS [trim|busy]     prints one line: the pool, the peak, what is held after the rounds and at rest
                                 busy: the main thread does not rest, and comes near a limit by memory of its own
"""

import json
import sys
import time

import memory
import pyarrow
import pyarrow.compute as compute

ROWS, ROUNDS, BELOW = 2_000_000, 2, 200
OWN_MIB = 90


def work():
    numbers = {f"n{i}": compute.random(ROWS) for i in range(6)}
    table = pyarrow.table({**numbers, "text": numbers["n0"].cast(pyarrow.string())})
    return table.sort_by("n1").num_rows


class Watched:
    """Arrow's pool, which counts how often it is asked near a limit: not because the process rests."""

    asked = 0

    def __init__(self, pool):
        self.pool = pool

    def __getattr__(self, name):
        return getattr(self.pool, name)

    def release_unused(self):
        import flarena

        self.asked += flarena.stats()["governor"]["near_limit"]
        self.pool.release_unused()


def busy(seconds):
    """Arrow's requests, and what is held beside the program's own, once both are as they should be."""
    watched = Watched(pyarrow.default_memory_pool())
    pyarrow.default_memory_pool = lambda: watched
    own = b"x" * (OWN_MIB << 20)
    end = time.monotonic() + seconds
    while time.monotonic() < end and not (watched.asked and memory.resident() < BELOW + len(own) / 1e6):
        # A thread that hardly ever gets a processor looks idle, and its pool is emptied before a limit is near.
        if memory.resident() < BELOW + len(own) / 1e6:
            work()
        sum(range(10_000))
    return {"asked": watched.asked, "busy": memory.resident() - len(own) / 1e6}


model = bytes(80 << 20)  # never touched; the governor comes where malloc has given out much
for _ in range(ROUNDS):
    work()
line = {"pool": pyarrow.default_memory_pool().backend_name, "peak": memory.peak(), "held": memory.resident()}
if sys.argv[2:] == ["trim"]:
    import flarena

    flarena.trim()
    line["trimmed"] = memory.resident()
if sys.argv[2:] == ["busy"]:
    line.update(busy(float(sys.argv[1])))
else:
    line["idle"] = memory.settled(BELOW, float(sys.argv[1]))
print(json.dumps({key: value if key == "pool" else round(value) for key, value in line.items()}))
