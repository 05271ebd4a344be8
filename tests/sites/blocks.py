"""blocks.py CASE: large blocks are recorded and small ones sampled, by their line, as long as they live."""

import ctypes
import json
import os
import sys
import threading

from flarena import _sites

libc = ctypes.CDLL(None)
for name in ("malloc", "calloc", "realloc", "aligned_alloc"):
    getattr(libc, name).restype = ctypes.c_void_p
libc.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]

MEGABYTE = 1 << 20
SIZES = [600, 1500, 3000, 10_000, 50_000, 100_000] * 100


def innermost(stack):
    """The function of the innermost frame in this file."""
    return next((frame[2] for frame in stack.get("frames", []) if frame[0] == __file__), None)


def held(function):
    """Bytes and standard error of the live blocks whose innermost frame in this file is this function."""
    who = json.loads(_sites.request("who"))
    sites = {stack["site"] for stack in who["stacks"] if innermost(stack) == function}
    holdings = [one for one in who["sites"] if one["site"] in sites]
    return sum(one["bytes"] for one in holdings), sum(one.get("error", 0) ** 2 for one in holdings) ** 0.5


def recorded():
    """Function and MB of each recorded block that this file allocated, the largest first."""
    who = json.loads(_sites.request("who"))
    functions = {stack["site"]: innermost(stack) for stack in who["stacks"]}
    sites = [(functions[one["site"]], one["bytes"] / MEGABYTE) for one in who["sites"]]
    return [f"{name} {size:g}" for name, size in sites if name not in (None, "recorded")]


def is_near(function, true):
    """A right estimate is within five standard errors, save one in a million."""
    estimate, error = held(function)
    print(f"{function}: {estimate} +- {error:.0f}, true {true}", file=sys.stderr)
    return error > 0 and abs(estimate - true) < 5 * error


def by_malloc(size):
    return libc.malloc(size)


def objects(size):
    return bytes(size)


def by_calloc(size):
    return libc.calloc(2, size // 2)


def by_aligned_alloc(size):
    return libc.aligned_alloc(64, size)


def by_realloc(block, size):
    return libc.realloc(block, size)


def free_all(blocks):
    for block in blocks:
        libc.free(block)


def backend():
    """Large blocks of the backend."""
    first, second, third = by_malloc(3 * MEGABYTE), by_calloc(4 * MEGABYTE), by_aligned_alloc(5 * MEGABYTE)
    print(*recorded())
    first = by_realloc(first, 7 * MEGABYTE)
    print(*recorded())
    # realloc to a size that is not recorded: one copies the block, one shrinks it in place.
    first = by_realloc(first, 100_000)
    second = by_realloc(second, 1000)
    print(*recorded())
    assert by_realloc(third, 1 << 62) is None
    print(*recorded())
    # Blocks that are not recorded: small ones, and one that was large.
    free_all((first, second, third, libc.malloc(100), None))
    return recorded() == []


def estimates():
    ways = (objects, by_malloc, by_calloc, by_aligned_alloc)
    kept = [[way(size) for size in SIZES] for way in ways]
    return bool(kept) and all(is_near(way.__name__, sum(SIZES)) for way in ways)


def freed():
    blocks = [by_malloc(size) for size in SIZES]
    before = held("by_malloc")
    thread = threading.Thread(target=free_all, args=(blocks,))
    thread.start()
    thread.join()
    return before[0] > 0 and held("by_malloc") == (0, 0)


def resized():
    blocks = [by_malloc(1000) for _ in range(3000)]
    for size in (20_000, 100_000, 5000):
        blocks = [by_realloc(block, size) for block in blocks]
    return held("by_malloc") == (0, 0) and is_near("by_realloc", 3000 * 5000)


def grown_in_place():
    """jemalloc has 2,560 bytes for each of these blocks from the beginning."""
    blocks = [by_malloc(2050) for _ in range(20_000)]
    blocks = [by_realloc(block, 2560) for block in blocks]
    return bool(blocks) and is_near("by_realloc", 20_000 * 2560)


def by_jemalloc():
    """jemalloc's own mallocx and rallocx."""
    for name in ("mallocx", "rallocx"):
        getattr(libc, name).restype = ctypes.c_void_p
    libc.rallocx.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    blocks = [by_mallocx(20_000) for _ in range(3000)]
    allocated = is_near("by_mallocx", 3000 * 20_000)
    blocks = [by_rallocx(block, 5000) for block in blocks]
    return allocated and held("by_mallocx") == (0, 0) and is_near("by_rallocx", 3000 * 5000)


def in_place():
    """jemalloc's xallocx keeps the block where it is."""
    libc.mallocx.restype, libc.xallocx.restype = ctypes.c_void_p, ctypes.c_size_t
    libc.xallocx.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
    blocks = [by_mallocx(100_000) for _ in range(1000)]
    sizes = {by_xallocx(block, 40_960) for block in blocks}
    print(f"sizes {sizes}", file=sys.stderr)
    return sizes == {40_960} and held("by_mallocx") == (0, 0) and is_near("by_xallocx", 1000 * 40_960)


def by_mallocx(size):
    return libc.mallocx(ctypes.c_size_t(size), 0)


def by_rallocx(block, size):
    return libc.rallocx(block, size, 0)


def by_xallocx(block, size):
    return libc.xallocx(block, size, 0, 0)


def forked():
    blocks = [by_malloc(size) for size in SIZES]
    before = held("by_malloc")
    child = os.fork()
    if child == 0:
        same = held("by_malloc") == before
        free_all(blocks)
        os._exit(not (same and held("by_malloc") == (0, 0)))
    return os.waitpid(child, 0)[1] == 0 and before[0] > 0 and held("by_malloc") == before


def full():
    for _ in range(75_000):
        by_malloc(2000)
    small = json.loads(_sites.request("who"))["small"]
    print(small, file=sys.stderr)
    return small["lost"] > 0 and small["samples"] > 40_000


if __name__ == "__main__":
    print("right" if globals()[sys.argv[1]]() else "wrong")
