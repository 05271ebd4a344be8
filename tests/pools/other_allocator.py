"""other_allocator.py LIBRARY MALLOC FREE trim|idle: memory that another allocator keeps is released.

The program calls the allocator of the library directly, and frees all blocks.
"""

import ctypes
import sys

import flarena
import memory

COUNT, SIZE = 1500, 100_000
path, malloc_name, free_name, way = sys.argv[1:]
library = ctypes.CDLL(path)
malloc, free = getattr(library, malloc_name), getattr(library, free_name)
malloc.restype, malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
free.restype, free.argtypes = None, [ctypes.c_void_p]

model = bytes(80 << 20)  # never touched; large enough to start the governor
before = memory.resident()
blocks = [malloc(SIZE) for _ in range(COUNT)]
for block in blocks:
    ctypes.memset(block, 1, SIZE)
for block in blocks:
    free(block)
# A governor may already have released some of it, if the process was stopped for a second.
kept = (memory.resident() if way == "trim" else memory.peak()) - before
assert kept > 100, f"the allocator keeps only {kept:.0f} MB, too little for this test"
if way == "trim":
    flarena.trim()
    left = memory.resident() - before
else:
    left = memory.idle(before + 30, 60) - before
# A full collection of mimalloc 2.0 releases no part of a segment that it keeps: up to 32 MB in each.
assert left < kept / 2, f"{left:.0f} MB of {kept:.0f} MB are left"
