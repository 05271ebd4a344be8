"""Garbage collection that counts bytes.

Python collects reference cycles by counting objects: a cycle of twenty that pins a model of 128 MB waits
for the next full collection, many rounds later. The library knows what large blocks hold, exactly. So at
the safe points of a program (a stage, a mark, a trim) a full collection runs when that has grown enough
since the last one, whoever ran it, and if it may be worth its time. FLARENA_GC=off turns this off.
"""

from __future__ import annotations

import gc
import os
import time

from ._native import Shim
from ._native import shim as find_shim
from ._safety import may_collect
from ._settings import collections_wanted

# Garbage that is worth a look: an eighth of what lives, within these bounds (docs/design/tuning.md).
_GROWTH_SHARE = 0.125
_LEAST_GROWTH_BYTES = 16 << 20
_MOST_GROWTH_BYTES = 32 << 20
# A collection that released less, or less of the growth, was hardly worth its time.
_WORTHWHILE_BYTES = 4 << 20
_WORTHWHILE_SHARE = 0.1
_LARGEST_FACTOR = 1 << 10
_TIME_SHARE = 0.01
_LARGEST_CREDIT_S = 1.0  # what an hour of quiet saves up is not spent in one minute


class Policy:
    """When a full collection is due. Pure: live bytes and seconds in, advice out."""

    def __init__(self, now: float) -> None:
        self._seen = False
        self._live_after_last = 0
        self._factor = 1
        self._looked = now
        self._credit_s = 0.0
        self._cost_s = 0.0

    def is_due(self, live: int, now: float) -> bool:
        share = int(self._live_after_last * _GROWTH_SHARE)
        threshold = min(max(share, _LEAST_GROWTH_BYTES), _MOST_GROWTH_BYTES) * self._factor
        if live - self._live_after_last < threshold:
            return False
        self._earn(now)
        return self._credit_s >= self._cost_s

    def collected(self, before: int, after: int, seconds: float, now: float, ours: bool) -> None:
        """A full collection has ended, ours or one that somebody else ran."""
        growth = before - self._live_after_last
        if before - after >= max(growth * _WORTHWHILE_SHARE, _WORTHWHILE_BYTES):
            self._factor = 1
        elif ours and self._seen:  # the first finds the program itself: that says nothing of what will grow
            self._factor = min(self._factor * 2, _LARGEST_FACTOR)
        self._seen = True
        self._live_after_last = after
        self._cost_s = seconds
        self._earn(now)
        if ours:
            self._credit_s -= seconds

    def _earn(self, now: float) -> None:
        earned = (now - self._looked) * _TIME_SHARE
        self._credit_s = min(self._credit_s + earned, max(_LARGEST_CREDIT_S, self._cost_s))
        self._looked = now


class Collector:
    """Watches the full collections of this interpreter, and runs one at a safe point when it is due."""

    def __init__(self, shim: Shim) -> None:
        self._shim = shim
        self._policy = Policy(time.monotonic())
        self._wanted = collections_wanted(os.environ)
        # The process in which a collection of ours runs: a child forked meanwhile has none.
        self._ours_in = 0
        self._seen = shim.collections()
        gc.callbacks.append(shim.on_collection)

    def safe_point(self) -> None:
        """Collect if it is due and may be. Never raises for reasons of its own."""
        if not self._wanted:
            return
        self._learn()
        if not self._policy.is_due(self._shim.live_bytes(), time.monotonic()):
            return
        pid = os.getpid()
        if pid == self._ours_in or not may_collect():
            return
        self._ours_in = pid
        try:
            self._collect()
        finally:
            self._ours_in = 0

    def _collect(self) -> None:
        ended, seen, before = _full_collections(), self._shim.collections().count, self._shim.live_bytes()
        since, cpu = time.monotonic(), time.thread_time()
        gc.collect()
        if _full_collections() == ended:  # one runs already: Python starts none inside it
            return
        if self._shim.collections().count == seen:  # the program has emptied gc.callbacks
            after, now = self._shim.live_bytes(), time.monotonic()
            self._policy.collected(before, after, time.thread_time() - cpu, now, ours=True)
            self._shim.note_collection(max(before - after, 0), now - since)
        else:
            self._learn()

    def _learn(self) -> None:
        """Tells the policy of the full collections that it does not know, as of one."""
        last, known = self._shim.collections(), self._seen
        if last.count <= known.count:
            return
        self._seen = last
        before = last.live_after + last.released - known.released
        # What it cost is processor time: a busy machine makes the same collection take longer.
        cpu, ours = last.cpu_us / 1e6, self._ours_in == os.getpid()
        self._policy.collected(before, last.live_after, cpu, time.monotonic(), ours)


def _full_collections() -> int:
    return int(gc.get_stats()[-1]["collections"])


_collector: Collector | None = None
_looked = False


def watch() -> Collector | None:
    """The collector of this interpreter, from now on watching; None without the library, or in a subinterpreter."""
    global _collector, _looked
    if not _looked:
        _looked = True
        shim = find_shim()
        if shim is not None and shim.counts_bytes and hasattr(gc, "callbacks") and shim.in_main_interpreter():
            _collector = Collector(shim)
    return _collector


def safe_point() -> None:
    """The program is where a garbage collection does no harm."""
    collector = watch()
    if collector is not None:
        collector.safe_point()
