"""Rounds of Apache Arrow: columns of numbers and texts that are created, sorted and dropped.

arrow.py SECONDS [trim [COMMAND]|busy]

Prints one line: the pool, the peak, and MB resident after the rounds and when idle. `trim` asks the package
for a trim, or the command. `busy`: the main thread is never idle, and allocates until a limit is near.
"""

import json
import os
import subprocess
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


class CountingPool:
    """Forwards to Arrow's pool and counts the release requests near a limit, not those of an idle process."""

    requests = 0

    def __init__(self, pool):
        self.pool = pool

    def __getattr__(self, name):
        return getattr(self.pool, name)

    def release_unused(self):
        import flarena

        self.requests += flarena.stats()["governor"]["near_limit"]
        self.pool.release_unused()


def busy(seconds):
    """Waits for a release request and for the release; returns the requests, and MB resident without own memory."""
    pool = CountingPool(pyarrow.default_memory_pool())
    pyarrow.default_memory_pool = lambda: pool
    own = b"x" * (OWN_MIB << 20)
    end = time.monotonic() + seconds
    while time.monotonic() < end and not (pool.requests and memory.resident() < BELOW + len(own) / 1e6):
        # On a busy machine the thread may look idle, so that the pool is emptied before a limit is near.
        if memory.resident() < BELOW + len(own) / 1e6:
            work()
        sum(range(10_000))
    return {"requests": pool.requests, "busy": memory.resident() - len(own) / 1e6}


def trim(command=None):
    import flarena

    if command is None:
        flarena.trim()
        return
    client = subprocess.Popen([command, "trim", "--json", str(os.getpid())], stdout=subprocess.PIPE)
    while client.poll() is None:  # the request needs this program's main thread
        time.sleep(0.02)
    json.load(client.stdout)


model = bytes(80 << 20)  # never touched; large enough to start the governor
for _ in range(ROUNDS):
    work()
line = {"pool": pyarrow.default_memory_pool().backend_name, "peak": memory.peak(), "held": memory.resident()}
if sys.argv[2:3] == ["trim"]:
    trim(*sys.argv[3:])
    line["trimmed"] = memory.resident()
if sys.argv[2:] == ["busy"]:
    line.update(busy(float(sys.argv[1])))
else:
    line["idle"] = memory.idle(BELOW, float(sys.argv[1]))
memory.show(line)
