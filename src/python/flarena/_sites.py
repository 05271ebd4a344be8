"""Allocation sites: the self-check that must pass before the library reads Python's frames, and the end.

The library walks the interpreter's own structures, whose layout is CPython's private affair. So first six
shapes of stacks are compared: what the library reads, by a system call that a wrong address cannot crash,
against what `sys._getframe` says. Any difference leaves sites off, with one line.
"""

from __future__ import annotations

import os
import sys

from ._log import quiet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

_DEPTH = 24  # frames that the library keeps: DEPTH of src/shim/sites/walk.rs

# The function of the preloaded library, once it was looked for.
_ask: Callable[[bytes, Any, int], int] | None = None
_buffer: Any = None
_length = 0
_started = False


def start() -> None:
    """Check, then switch the reading of frames on. Idempotent; never raises; no preload: nothing."""
    global _started
    if _started:
        return
    _started = True
    try:
        if not _bind():
            return
        reason = _obstacle() or _disagreement()
    except Exception as error:  # what we do not understand we do not use
        reason = f"its self-check failed ({type(error).__name__})"
    if reason:
        request("off " + reason)
        _say(f"flarena: FLARENA_SITES is off in this process: {reason}\n")
        return
    import atexit

    # Registered this early it runs last, before the interpreter takes the threads' states away.
    atexit.register(request, "stop")
    request("start")


def request(text: str) -> str | None:
    """One request to the library; None where it does not know it."""
    import ctypes

    if _ask is None and not _bind():
        return None
    ask = _ask
    assert ask is not None
    needed = ask(text.encode("utf-8", "replace"), None, 0) if text.partition(" ")[0] in _MAY_BE_LONG else 4096
    buffer = ctypes.create_string_buffer(max(needed, 0) + 4096)
    if ask(text.encode("utf-8", "replace"), buffer, len(buffer)) < 0:
        return None
    return buffer.value.decode("utf-8", "replace")


_MAY_BE_LONG = ("who", "blocks")


def _bind() -> bool:
    global _ask, _buffer, _length
    import ctypes

    try:
        function = ctypes.CDLL(None).flarena_sites
    except (AttributeError, OSError, TypeError):
        return False
    function.restype = ctypes.c_int
    function.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)
    _ask, _length = function, 65536
    _buffer = ctypes.create_string_buffer(_length)
    return True


def _obstacle() -> str | None:
    if sys.implementation.name != "cpython":
        return f"{sys.implementation.name} has frames of its own"
    if not getattr(sys, "_is_gil_enabled", bool)() and hasattr(sys, "_is_gil_enabled"):
        return "this Python is free-threaded"
    return request(f"prepare {sys.hexversion >> 16}") or None


def _theirs(frame: Any) -> list[str]:
    lines: list[str] = []
    while frame is not None and len(lines) < _DEPTH:
        code = frame.f_code
        lines.append(f"{code.co_filename}\t{frame.f_lineno}\t{getattr(code, 'co_qualname', code.co_name)}")
        frame = frame.f_back
    return lines


def _ours() -> list[str]:
    return str(_buffer.value.decode("utf-8", "replace")).splitlines()


class _Comparison:
    """Each shape calls `see` at its innermost point."""

    def __init__(self) -> None:
        self.seen = 0
        self.differs: list[str] = []

    def see(self, shape: str) -> None:
        ask = _ask
        assert ask is not None
        # One line: both see this frame at the same place.
        pair = ask(b"frames", _buffer, _length), _theirs(sys._getframe())
        self.seen += 1
        if [_plain(line) for line in pair[1]] != [_plain(line) for line in _ours()]:
            self.differs.append(shape)


def _plain(line: str) -> str:
    # The library keeps the end of a long name, and no control characters; a name's tail tells them apart.
    file, number, name = line.rsplit("\t", 2)
    return f"{file[-60:]}\t{number}\t{name[-60:]}" if line.isascii() else number


def _disagreement() -> str | None:
    comparison = _Comparison()
    shapes = (_function, _recursion, _generator, _coroutine, _callback, _thread)
    for shape in shapes:
        shape(comparison)
    if comparison.differs:
        differs = ", ".join(comparison.differs)
        return f"Python {sys.version.split()[0]} shows other frames than it was thought to ({differs})"
    if comparison.seen < len(shapes):
        return "its self-check did not run to the end"
    return None


def _function(comparison: _Comparison) -> None:
    (
        comparison
        .see("a function")
    )  # fmt: skip


def _recursion(comparison: _Comparison, depth: int = 30) -> None:
    if depth == 0:
        comparison.see("recursion")
    else:
        _recursion(comparison, depth - 1)


def _generator(comparison: _Comparison) -> None:
    def inner() -> Generator[int, None, None]:
        yield 1
        comparison.see("a generator")

    def outer() -> Generator[int, None, None]:
        yield from inner()

    for _ in outer():
        pass


def _coroutine(comparison: _Comparison) -> None:
    async def inner() -> None:
        comparison.see("a coroutine")

    async def outer() -> None:
        await inner()

    try:
        outer().send(None)
    except StopIteration:
        pass


def _callback(comparison: _Comparison) -> None:
    class Last:
        def __del__(self) -> None:
            comparison.see("__del__")

    def key(number: int) -> int:
        comparison.see("a callback of C")
        return number

    last = Last()
    del last
    sorted((1,), key=key)


def _thread(comparison: _Comparison) -> None:
    import _thread as threads

    done = threads.allocate_lock()
    done.acquire()

    def body() -> None:
        try:
            comparison.see("a thread")
        finally:
            done.release()

    threads.start_new_thread(body, ())
    done.acquire()


def _say(line: str) -> None:
    if quiet(os.environ):
        return
    try:
        os.write(2, line.encode("utf-8", "replace"))
    except OSError:
        pass
