"""marker_fields.py FILE: markers report the memory of pools beside malloc: Python's arenas and Arrow's pool."""

import json
import sys

import flarena
import pyarrow
import pyarrow.compute as compute

BYTES = 8 * 1_000_000


def mark(stage):
    flarena.mark(stage)
    with open(sys.argv[1]) as file:  # on a slow machine the governor adds periodic ones
        return next(marker for marker in map(json.loads, file) if marker["stage"] == stage)


before = mark("before")
objects = [[] for _ in range(500_000)]
column = compute.random(BYTES // 8)
after = mark("after")
arenas = after["pymalloc_bytes"] - before["pymalloc_bytes"]
assert 500_000 * sys.getsizeof([]) < arenas < 120e6, arenas
assert after["arrow_bytes"] == pyarrow.total_allocated_bytes() >= BYTES, after
assert after["pinned_bytes"] is None, after
assert flarena.stats()["arrow_bytes"] == after["arrow_bytes"], flarena.stats()
del objects, column
gone = mark("gone")
assert gone["pymalloc_bytes"] < after["pymalloc_bytes"] - arenas / 2, (after, gone)
assert gone["arrow_bytes"] == before["arrow_bytes"], (before, gone)
