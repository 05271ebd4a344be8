"""The C functions of the preloaded libflarena.so (flarena.h), found in the running process.

They are looked up in the process, never loaded from a file: a second copy of the library would have its
own state. ctypes releases the GIL during a call, so other Python threads run during a long trim.
Functions of a few instructions keep the GIL. All functions are thread-safe.
"""

from __future__ import annotations

import ctypes
import os

from . import _pools
from ._cpython import is_main_interpreter
from ._safety import belongs_to_program
from ._settings import pools_wanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LONG_MAX = (1 << (8 * ctypes.sizeof(ctypes.c_long) - 1)) - 1
_UNKNOWN_ROUND = -1
_LONGEST_LINE = 1024  # a process, a site and a stage have at most 128 bytes each
_NO_POOL = (1 << (8 * ctypes.sizeof(ctypes.c_size_t))) - 1


# The steps of flarena_stage_collection.
_ASK, _HAS_RUN, _HAS_NOT_RUN = 0, 1, 2
_WAITS = 3
_ASK_YOUNG, _HAS_RUN_YOUNG, _HAS_NOT_RUN_YOUNG = 4, 5, 6
_ASK_BEFORE_WAIT = 7


class Shim:
    """The flarena_* functions with Python types."""

    def __init__(self, process: ctypes.CDLL) -> None:
        """Raises AttributeError if the process does not run on libflarena.so."""
        self._markers_on: bool | None = None
        self._noted_pools: tuple[int | None, ...] = ()
        self._mark = _bind(process.flarena_mark, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_long)
        self._trim = _bind(process.flarena_trim, ctypes.c_int)
        self._allocator = _bind(process.flarena_allocator, ctypes.c_char_p)
        self._version = _bind(process.flarena_version, ctypes.c_char_p)
        self._stats = _bind(process.flarena_stats_json, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)

        # These take less than a microsecond, so they keep the GIL. An older library does not have them.
        quick = ctypes.PyDLL(None)
        self.counts_bytes = hasattr(process, "flarena_stage_collection") and quick.flarena_collections() == 0
        if self.counts_bytes:
            self._stage_collection = _bind(quick.flarena_stage_collection, ctypes.c_int, ctypes.c_int)
            # The step _WAITS purges pages, so other threads run in the meantime.
            self._before_wait = _bind(process.flarena_stage_collection, ctypes.c_int, ctypes.c_int)
            # A member of gc.callbacks. A Python function there would let other threads run when it begins.
            self.on_collection = _bind(quick.flarena_on_collection, None, ctypes.py_object, ctypes.py_object)
        self._notes_trainer = hasattr(process, "flarena_note_trainer")
        if self._notes_trainer:
            self._note_trainer = _bind(quick.flarena_note_trainer, None)
        self._copies_lines = hasattr(process, "flarena_mark_and_copy")
        if self._copies_lines:
            names = (ctypes.c_char_p, ctypes.c_char_p)
            copy = (ctypes.c_char_p, ctypes.c_size_t)
            self._mark_and_copy = _bind(process.flarena_mark_and_copy, ctypes.c_int, *names, ctypes.c_long, *copy)
        self._notes_pools = hasattr(process, "flarena_note_pools") and pools_wanted(os.environ)
        if self._notes_pools:
            self._note_pools = _bind(process.flarena_note_pools, None, ctypes.c_size_t, ctypes.c_size_t)
        self._notes_gpu = self._notes_pools and hasattr(process, "flarena_note_gpu")
        if self._notes_gpu:
            self._note_gpu = _bind(process.flarena_note_gpu, None, ctypes.c_size_t, ctypes.c_size_t)
        self._notes_job = hasattr(process, "flarena_note_job")
        if self._notes_job:
            self._note_job = _bind(quick.flarena_note_job, None, ctypes.c_char_p)

    def request_collection(self, is_full: bool, waits: bool) -> bool:
        """True if a collection is due, full or of the young objects. Then call `end_collection` in the same thread.

        `waits`: the program waits after this. An older library then never grants a full collection. Needs
        `counts_bytes`.
        """
        ask = (_ASK_BEFORE_WAIT if waits else _ASK) if is_full else _ASK_YOUNG
        return bool(self._stage_collection(ask) == 1)

    def end_collection(self, is_full: bool, has_run: bool) -> None:
        """Report whether the collection that was due has run."""
        steps = (_HAS_NOT_RUN, _HAS_RUN) if is_full else (_HAS_NOT_RUN_YOUNG, _HAS_RUN_YOUNG)
        self._stage_collection(steps[has_run])

    def before_wait(self) -> None:
        """Return cached pages to the system: the program waits for others now. Does nothing in an older library."""
        if self.counts_bytes:
            self._before_wait(_WAITS)

    def in_main_interpreter(self) -> bool:
        """False in a subinterpreter: most of the process's blocks are not its garbage."""
        return is_main_interpreter()

    def note_trainer(self) -> None:
        """Report that this process receives models: it is a trainer, however it was started."""
        if self._notes_trainer:
            self._note_trainer()

    def note_job(self, job: str | None) -> None:
        """Report the id of the job whose model this process has received. Markers contain a part of it."""
        if self._notes_job:
            self._note_job(None if job is None else _c_string(job))

    def mark(self, stage: str, site: str | None, round: int | None) -> bool:
        """Emit one marker. False if writing failed, and while markers are off."""
        return self._mark(*self._arguments(stage, site, round)) == 0 and self._are_markers_on()

    def mark_and_copy(self, stage: str, site: str | None, round: int | None) -> str:
        """Emit one marker. Returns its line on stderr, or an empty text if markers are off."""
        if not self._copies_lines:
            self.mark(stage, site, round)
            return ""
        line = ctypes.create_string_buffer(_LONGEST_LINE)
        self._mark_and_copy(*self._arguments(stage, site, round), line, _LONGEST_LINE)
        return line.value.decode("utf-8", "replace")

    def _arguments(self, stage: str, site: str | None, round: int | None) -> tuple[bytes, bytes | None, int]:
        if self._are_markers_on():
            self.note_pools()
        number = _UNKNOWN_ROUND if round is None or not 0 <= round <= _LONG_MAX else round
        return _c_string(stage), None if site is None else _c_string(site), number

    def note_pools(self) -> None:
        """Tell the library the sizes of the pools that only Python knows, unless FLARENA_POOLS=off."""
        if not self._notes_pools:
            return
        held = held_by_pools() + held_on_gpus()
        noted = (os.getpid(), *held)  # the library forgets some of them in a forked child
        if noted != self._noted_pools:
            self._noted_pools = noted
            sizes = [_NO_POOL if size is None else size for size in held]
            self._note_pools(*sizes[:2])
            if self._notes_gpu:
                self._note_gpu(*sizes[2:])

    def _are_markers_on(self) -> bool:
        # The library read the setting when the process started. The environment may have changed since, so
        # ask the library. Do not import json for that: a finalizer may mark in the middle of an import.
        if self._markers_on is None:
            value = self.stats_json().partition('"NVFLARE_CLIENT_MEMORY_PROFILE"')[2]
            self._markers_on = value.lstrip(": ").startswith('"on"')
        return self._markers_on

    def trim(self) -> int:
        """Returns 1 (memory was released), 0 (nothing to release) or -1 (not available)."""
        release_pools()
        return int(self._trim())

    def allocator(self) -> str:
        return str(self._allocator(), "ascii")

    def version(self) -> str:
        return str(self._version(), "ascii")

    def stats_json(self) -> str:
        # Like snprintf, the function returns the size needed. Numbers may grow until the next call: leave room.
        needed = self._stats(None, 0)
        while True:
            room = max(needed, 0) + 256
            buffer = ctypes.create_string_buffer(room)
            needed = self._stats(buffer, room)
            if needed < 0:  # an internal error, which the library has reported on stderr
                return "{}"
            if needed < room:
                return buffer.value.decode("utf-8", "replace")


def release_pools() -> None:
    """Make the pools beside malloc return their free memory, unless FLARENA_POOLS=off."""
    if pools_wanted(os.environ):
        for release in _pools.RELEASES:
            contained(release)


def held_by_pools() -> tuple[int | None, int | None]:
    """Bytes in use in Arrow's pool, and bytes that PyTorch has pinned. None if there is no such pool."""
    return contained(_pools.arrow_bytes), contained(_pools.pinned_bytes)


def held_on_gpus() -> tuple[int | None, int | None]:
    """Bytes of PyTorch's tensors on all GPUs, and of the cache that they are in. None if it does not use CUDA."""
    return contained(_pools.gpu_bytes) or (None, None)


def contained(call: Any) -> Any:
    """The result of a call, or None after an error of the library that it asks."""
    try:
        return call()
    except BaseException as error:
        if belongs_to_program(error):
            raise
        return None


def _bind(function: Any, result: type | None, *arguments: type) -> Any:
    function.restype = result
    function.argtypes = arguments
    return function


def _c_string(text: str) -> bytes:
    # A NUL would end the C string early. The library escapes other control characters.
    return str.encode(text, "utf-8", "replace").replace(b"\0", b" ")


_shim: Shim | None = None
_is_looked_up = False


def shim() -> Shim | None:
    """The preloaded library, or None. Looked up once: a process cannot gain a preload while it runs."""
    # Two threads may look it up at the same time. Both find the same library.
    global _shim, _is_looked_up
    if not _is_looked_up:
        try:
            _shim = Shim(ctypes.CDLL(None))
        except (AttributeError, OSError, TypeError):
            _shim = None
        _is_looked_up = True
    return _shim
