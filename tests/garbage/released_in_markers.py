"""released_in_markers.py FILE: the next marker reports a collection, once, and the statistics count the full ones."""

import gc
import json
import sys
import time

import flarena
import rounds


def last():
    with open(sys.argv[1], encoding="utf-8") as lines:
        marker = json.loads(lines.readlines()[-1])
    return marker["gc_released_bytes"], marker["gc_ms"], marker["gc_live_after_bytes"]


def is_blocks(size, number):
    return 0 <= size - number * rounds.BLOCK < 1 << 20  # each block has one page more


rounds.freeze_start()
flarena.mark("first")
assert last() == (None, None, None), last()
rounds.Node()
gc.collect()
flarena.mark("second")
released, ms, live_after = last()
assert is_blocks(released, 1) and ms is not None and live_after == rounds.live(), last()
flarena.mark("third")
assert last() == (0, 0, None), last()
for _ in range(4):
    rounds.drop()
rounds.earn_time()
flarena.mark("fourth")  # collects first
assert is_blocks(last()[0], 4), last()
rounds.Node()
time.sleep(1)  # pays for a collection of the young objects on a busy machine
flarena.mark("fifth")  # collects the young objects
assert is_blocks(last()[0], 1), last()

garbage = flarena.stats()["garbage"]
assert garbage["collections"] == 2 and is_blocks(garbage["released_bytes_total"], 6), garbage
assert garbage["live_after_last_bytes"] == flarena.stats()["recycler"]["live_bytes"], garbage
assert flarena.stats()["settings"]["FLARENA_GC"] == "auto"
