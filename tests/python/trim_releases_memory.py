"""Frees most of 200 MB in blocks of 4 KB, which the allocator keeps. Each way to trim releases them."""

import flarena


def rss():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096


assert flarena.loaded()
for release in (flarena.trim, flarena.try_malloc_trim, flarena.cleanup_memory):
    blocks = [bytearray(4000) for _ in range(50_000)]
    pins = blocks[::5000]
    full = rss()
    del blocks
    released = release()
    assert released == (None if release is flarena.cleanup_memory else 1), (release.__name__, released)
    assert rss() < full - (150 << 20), (release.__name__, full, rss())
    del pins
