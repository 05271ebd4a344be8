"""Frees 64 MB of small blocks and trims. Prints the result of the trim and whether the memory went back."""

import ctypes

BLOCK_BYTES = 4096
BLOCKS = 16384

process = ctypes.CDLL(None)
process.malloc.restype = ctypes.c_void_p
process.free.argtypes = [ctypes.c_void_p]


def resident_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096


blocks = [process.malloc(BLOCK_BYTES) for _ in range(BLOCKS)]
for block in blocks:
    ctypes.memset(block, 1, BLOCK_BYTES)
held = resident_bytes()
# The last block stays, so that glibc cannot shrink its heap from the top without a trim.
for block in blocks[:-1]:
    process.free(block)
answer = process.flarena_trim()
print(answer, "returned" if held - resident_bytes() > BLOCKS * BLOCK_BYTES * 0.8 else "kept")
