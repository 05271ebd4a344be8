"""Full garbage collections at the safe points of a program: its stages, markers and trims.

Python's collector counts objects. A cycle of twenty objects that holds a model of 128 MB waits for the next
full collection, many rounds later. The library counts the bytes of large blocks, so it decides when a
collection is due (src/shim/garbage/policy.rs). This module asks it, checks that a collection may run here, and
runs it. FLARENA_GC=off turns that off.
"""

from __future__ import annotations

import gc
import os

from ._native import Shim
from ._native import shim as find_shim
from ._safety import may_collect
from ._settings import collections_wanted

_YOUNG, _FULL = 1, 2  # generations of Python's collector


class Collector:
    """Reports this interpreter's full collections to the library, and runs the ones that are due. Thread-safe."""

    def __init__(self, shim: Shim) -> None:
        self._shim = shim
        self._is_wanted = collections_wanted(os.environ)
        gc.callbacks.append(shim.on_collection)

    def safe_point(self, waits: bool) -> None:
        """Run the collections that are due and may run here: of the young objects, then of all if that is still due."""
        if self._is_wanted:
            for generation in (_YOUNG, _FULL):
                self._collect_if_due(generation, waits)

    def _collect_if_due(self, generation: int, waits: bool) -> None:
        is_full = generation == _FULL
        if not self._shim.request_collection(is_full, waits):
            return
        has_run = False
        try:
            has_run = may_collect() and _collect(generation)
        finally:
            self._shim.end_collection(is_full, has_run)


def _collect(generation: int) -> bool:
    """False if a collection is running already: then Python does not start a second one."""
    count = _collections(generation)
    gc.collect(generation)
    return _collections(generation) > count


def _collections(generation: int) -> int:
    return int(gc.get_stats()[generation]["collections"])


_collector: Collector | None = None
_is_looked_up = False


def watch() -> Collector | None:
    """The collector of this interpreter. From the first call on it reports each full collection to the library.

    None without the library, with an older one, and in a subinterpreter.
    """
    global _collector, _is_looked_up
    if not _is_looked_up:
        _is_looked_up = True
        shim = find_shim()
        if shim is not None and shim.counts_bytes and hasattr(gc, "callbacks") and shim.in_main_interpreter():
            _collector = Collector(shim)
    return _collector


def safe_point(waits: bool = False) -> None:
    """Call this where a full garbage collection does no harm. Does nothing without the library.

    `waits`: the program waits after this, so garbage would stay for long.
    """
    collector = watch()
    if collector is not None:
        collector.safe_point(waits)
