"""Large blocks of the backend are recorded with their size while they live."""

import ctypes
import json

from flarena import _sites

libc = ctypes.CDLL(None)
for name in ("malloc", "calloc", "realloc", "aligned_alloc"):
    getattr(libc, name).restype = ctypes.c_void_p
libc.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
MEGABYTE = 1 << 20


def held():
    """Function and MB of each recorded block that this file allocated, the largest first."""
    who = json.loads(_sites.request("who"))
    functions = {}
    for stack in who["stacks"]:
        frame = next((frame for frame in stack["frames"] if frame[0] == __file__), None)
        functions[stack["site"]] = frame and frame[2]
    sites = [(site["bytes"] / MEGABYTE, functions[site["site"]]) for site in who["sites"]]
    return [f"{name} {size:g}" for size, name in sites if name not in (None, "held")]


def by_malloc():
    return libc.malloc(3 * MEGABYTE)


def by_calloc():
    return libc.calloc(4, MEGABYTE)


def by_aligned_alloc():
    return libc.aligned_alloc(64, 5 * MEGABYTE)


def by_realloc(block, size):
    return libc.realloc(block, size)


def main():
    first, second, third = by_malloc(), by_calloc(), by_aligned_alloc()
    print(*held())
    first = by_realloc(first, 7 * MEGABYTE)
    print(*held())
    # realloc to a size that is not recorded: one copies the block, one shrinks it in place.
    first = by_realloc(first, 100_000)
    second = by_realloc(second, 1000)
    print(*held())
    assert by_realloc(third, 1 << 62) is None
    print(*held())
    # Blocks that are not recorded: small ones, and one that was large.
    for block in (first, second, third, libc.malloc(100), None):
        libc.free(block)
    print(*held(), "nothing")


main()
