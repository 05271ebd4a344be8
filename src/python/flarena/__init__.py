"""Python's view of flarena: trim, mark and measure the memory of this process.

libflarena.so is preloaded, never imported; this package talks to the copy that the process already
runs on. Without the preload everything here still works and tells the plain truth: `loaded()` is
False, `mark()` does nothing, `trim()` falls back to glibc's own malloc_trim.

Every function may be called from any thread, at any time, also after fork. None of them raises
because memory could not be released or a marker could not be written. Sizes are in bytes.
"""

from __future__ import annotations

from ._memory import (
    allocator,
    cleanup_memory,
    get_allocator_type,
    holders,
    loaded,
    mark,
    stats,
    trim,
    try_malloc_trim,
    version,
)

__all__ = [
    "allocator",
    "cleanup_memory",
    "get_allocator_type",
    "holders",
    "loaded",
    "mark",
    "stats",
    "trim",
    "try_malloc_trim",
    "version",
]
