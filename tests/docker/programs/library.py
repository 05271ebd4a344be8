"""The malloc of this process, its statistics, and its memory."""

import ctypes
import json
import time

process = ctypes.CDLL(None)
process.malloc.restype = ctypes.c_void_p
process.malloc.argtypes = [ctypes.c_size_t]
process.free.argtypes = [ctypes.c_void_p]


def touched(count, size):
    """The addresses of new blocks."""
    blocks = [process.malloc(size) for _ in range(count)]
    for block in blocks:
        ctypes.memset(block, 1, size)
    return blocks


def stats():
    text = ctypes.create_string_buffer(1 << 16)
    process.flarena_stats_json(text, len(text))
    return json.loads(text.value)


def resident_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096


def becomes_true(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)
    return condition()


def counts_stalls():
    return stats()["governor"]["pressure_events"] > 0
