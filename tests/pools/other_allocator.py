"""A library with an allocator of its own, used past malloc: what it keeps goes back at a trim, and at rest.

foreign.py LIBRARY MALLOC FREE trim|idle
"""

import ctypes
import sys

import flarena
import memory

COUNT, SIZE = 1500, 100_000
library, malloc, free, way = sys.argv[1:]
own = ctypes.CDLL(library)
take, give = getattr(own, malloc), getattr(own, free)
take.restype, take.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
give.restype, give.argtypes = None, [ctypes.c_void_p]

model = bytes(80 << 20)  # never touched; the governor comes where malloc has given out much
before = memory.resident()
blocks = [take(SIZE) for _ in range(COUNT)]
for block in blocks:
    ctypes.memset(block, 1, SIZE)
for block in blocks:
    give(block)
kept = memory.resident() - before
assert kept > 100, f"keeps {kept:.0f} MB by itself: this shows nothing"
if way == "trim":
    flarena.trim()
    left = memory.resident() - before
else:
    left = memory.settled(before + 30, 12) - before
assert left < 30, f"{left:.0f} MB of {kept:.0f} MB are left"
