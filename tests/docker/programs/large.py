"""Allocates and frees large blocks, and prints a line once the governor runs and their memory went back."""

import ctypes
import json
import time

BLOCK_BYTES = 40 << 20
ROUNDS = 5
PATIENCE_SECONDS = 60

process = ctypes.CDLL(None)
process.malloc.restype = ctypes.c_void_p
process.malloc.argtypes = [ctypes.c_size_t]
process.free.argtypes = [ctypes.c_void_p]


def stats():
    text = ctypes.create_string_buffer(1 << 16)
    process.flarena_stats_json(text, len(text))
    return json.loads(text.value)


def idle_again(now):
    resident = now["rss_bytes"] or 0  # unknown without /proc
    return now["governor"]["running"] and resident < BLOCK_BYTES


for _ in range(ROUNDS):
    blocks = [process.malloc(BLOCK_BYTES) for _ in range(3)]
    for block in blocks:
        ctypes.memset(block, 1, BLOCK_BYTES)
    for block in blocks:
        process.free(block)

deadline = time.monotonic() + PATIENCE_SECONDS
while not idle_again(now := stats()):
    if time.monotonic() > deadline:
        raise SystemExit(f"no idle memory went back: {now}")
    time.sleep(0.1)
print("large blocks came and went")
