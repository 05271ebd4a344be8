"""Frees 150 MB to the allocator, nearly fills a container of 256 MB with live memory, and waits until the freed memory
went back. Then it takes 100 MB more, which fits only if the memory went back.

usage: near_limit.py [SECONDS]    it waits at most so long (60 by default, for an emulated machine)
"""

import mmap
import sys

from library import becomes_true, process, resident_bytes, touched

MB = 1 << 20
BLOCK_BYTES = 4096
RESIDENT_MB = 140  # 70 MB live and the interpreter; 230 MB and more with the freed memory


def live(megabytes):
    """Memory that the allocator does not manage."""
    area = mmap.mmap(-1, megabytes * MB)
    for page in range(0, len(area), mmap.PAGESIZE):
        area[page] = 1
    return area


for block in touched(150 * MB // BLOCK_BYTES, BLOCK_BYTES)[:-1]:
    process.free(block)
first = live(70)
becomes_true(lambda: resident_bytes() <= RESIDENT_MB * MB, float(sys.argv[1]) if len(sys.argv) > 1 else 60)
second = live(100)
print("survived")
