"""Rounds of Apache Arrow: columns of numbers and texts that are made, sorted and dropped.

arrow.py IDLE-SECONDS [trim]     prints one line: the pool, the peak, what is held after the rounds and at rest
"""

import json
import sys

import memory
import pyarrow
import pyarrow.compute as compute

ROWS, ROUNDS, BELOW = 2_000_000, 2, 200


def work():
    numbers = {f"n{i}": compute.random(ROWS) for i in range(6)}
    table = pyarrow.table({**numbers, "text": numbers["n0"].cast(pyarrow.string())})
    return table.sort_by("n1").num_rows


model = bytes(80 << 20)  # never touched; the governor comes where malloc has given out much
for _ in range(ROUNDS):
    work()
line = {"pool": pyarrow.default_memory_pool().backend_name, "peak": memory.peak(), "held": memory.resident()}
if sys.argv[2:] == ["trim"]:
    import flarena

    flarena.trim()
    line["trimmed"] = memory.resident()
line["idle"] = memory.settled(BELOW, float(sys.argv[1]))
print(json.dumps({key: value if key == "pool" else round(value) for key, value in line.items()}))
