"""Rounds of Polars: a frame is created, sorted, grouped and dropped. Prints peak, resident and idle MB.

polars_rounds.py MB     waits a minute at most until less than this is resident
"""

import sys

import memory
import polars

ROWS, ROUNDS = 2_000_000, 3


def work():
    numbers = polars.int_range(ROWS, eager=True)
    frame = polars.DataFrame({"key": (numbers * 7919) % 100_003, **{f"n{i}": numbers * (i + 0.5) for i in range(6)}})
    return frame.sort("key").group_by("key").agg(polars.col("n0").sum()).height


for _ in range(ROUNDS):
    work()
line = {"peak": memory.peak(), "held": memory.resident(), "idle": memory.idle(float(sys.argv[1]), 60)}
memory.show(line)
