"""Frees 64 MB of small blocks and trims. Prints the result of the trim and whether the memory went back."""

from library import process, resident_bytes, touched

BLOCK_BYTES = 4096
BLOCKS = 16384

blocks = touched(BLOCKS, BLOCK_BYTES)
held = resident_bytes()
# The last block stays, so that glibc cannot shrink its heap from the top without a trim.
for block in blocks[:-1]:
    process.free(block)
answer = process.flarena_trim()
print(answer, "returned" if held - resident_bytes() > BLOCKS * BLOCK_BYTES * 0.8 else "kept")
