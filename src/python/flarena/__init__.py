"""Trim, mark and measure the memory of this process.

libflarena.so is preloaded and cannot be imported. This package calls the copy that the process already
runs on. Without the preload every function still works: `loaded()` returns False, `mark()` does
nothing, and `trim()` falls back to glibc's malloc_trim.

Every function is thread-safe and may be called at any time, also after fork. A failure to release
memory or to write a marker is a return value, never an exception. Sizes are in bytes.
"""

from __future__ import annotations

from ._api import (
    allocator,
    cleanup_memory,
    get_allocator_type,
    holders,
    loaded,
    mark,
    metrics,
    stats,
    trim,
    try_malloc_trim,
    version,
)
from ._report import report
from ._stage import stage

# The version of this package; version() is that of the preloaded library.
__version__ = "0.1.0"

__all__ = [
    "__version__",
    "allocator",
    "cleanup_memory",
    "get_allocator_type",
    "holders",
    "loaded",
    "mark",
    "metrics",
    "report",
    "stage",
    "stats",
    "trim",
    "try_malloc_trim",
    "version",
]
