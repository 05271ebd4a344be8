"""Leaves 150 MB of freed memory with the allocator, fills a 256 MB container almost with live
memory, waits a moment, then takes 100 MB more: that fits only if the freed memory went back."""

import ctypes
import mmap
import time

MB = 1 << 20
BLOCK_BYTES = 4096

process = ctypes.CDLL(None)
process.malloc.restype = ctypes.c_void_p
process.free.argtypes = [ctypes.c_void_p]


def live(megabytes):
    """Memory that no allocator can give back."""
    area = mmap.mmap(-1, megabytes * MB)
    for page in range(0, len(area), mmap.PAGESIZE):
        area[page] = 1
    return area


blocks = [process.malloc(BLOCK_BYTES) for _ in range(150 * MB // BLOCK_BYTES)]
for block in blocks:
    ctypes.memset(block, 1, BLOCK_BYTES)
for block in blocks[:-1]:
    process.free(block)
first = live(70)
time.sleep(6)
second = live(100)
print("survived")
