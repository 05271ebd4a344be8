"""Cost of a large block in a Python program, in nanoseconds: np.empty of 8 MB, and its free.

    large_pair.py --pairs N

The fastest of twenty batches counts, by the CPU clock of the thread, because other processes slow down the others. No
page is written: the time is that of the allocator, NumPy and, with FLARENA_SITES=on, recording the site.
"""

import json
import os
import sys
import time

import numpy

ELEMENTS = 1 << 20  # of 8 bytes
BATCHES = 20


def batch(pairs):
    start = time.thread_time()
    for _ in range(pairs):
        numpy.empty(ELEMENTS)
    return (time.thread_time() - start) * 1e9 / pairs


def check_sites_are_recorded():
    """Exits unless sites are recorded; otherwise their cost would be measured as zero."""
    from flarena import _sites

    kept = numpy.empty(ELEMENTS)
    who = json.loads(_sites.request("who"))
    lines = [frame[0] for stack in who["stacks"] for frame in stack["frames"]]
    if not who["on"] or __file__ not in lines:
        sys.exit(f"large_pair.py: FLARENA_SITES=on, but no site was recorded: {who}")
    del kept


if __name__ == "__main__":
    if os.environ.get("FLARENA_SITES") == "on":
        check_sites_are_recorded()
    pairs = int(sys.argv[sys.argv.index("--pairs") + 1])
    print(json.dumps({"pair_ns": min(batch(pairs) for _ in range(BATCHES))}))
