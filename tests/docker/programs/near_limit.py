"""Frees 150 MB to the allocator, nearly fills a container of 256 MB with live memory, and waits until the freed memory
went back. Then it takes 100 MB more, which fits only if the memory went back.

usage: near_limit.py [SECONDS]    it waits at most so long (60 by default, for an emulated machine)
"""

import ctypes
import mmap
import sys
import time

MB = 1 << 20
BLOCK_BYTES = 4096
RESIDENT_MB = 140  # 70 MB live and the interpreter; 230 MB and more with the freed memory
PATIENCE_SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 60

process = ctypes.CDLL(None)
process.malloc.restype = ctypes.c_void_p
process.free.argtypes = [ctypes.c_void_p]


def live(megabytes):
    """Memory that the allocator does not manage."""
    area = mmap.mmap(-1, megabytes * MB)
    for page in range(0, len(area), mmap.PAGESIZE):
        area[page] = 1
    return area


def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * mmap.PAGESIZE


blocks = [process.malloc(BLOCK_BYTES) for _ in range(150 * MB // BLOCK_BYTES)]
for block in blocks:
    ctypes.memset(block, 1, BLOCK_BYTES)
for block in blocks[:-1]:
    process.free(block)
first = live(70)
deadline = time.monotonic() + PATIENCE_SECONDS
while resident() > RESIDENT_MB * MB and time.monotonic() < deadline:
    time.sleep(0.2)
second = live(100)
print("survived")
