"""Allocation sites: requests to the library, and the self-check before the library reads Python's frames.

The library reads frames out of the interpreter's memory, whose layout differs between versions of CPython.
So the check compares six shapes of stacks: the library's result, read by a system call that survives a
wrong address, against `sys._getframe`. After any difference sites stay off, with one line on stderr.
"""

from __future__ import annotations

import os
import sys

from ._cpython import is_main_interpreter, obstacle_to_reading_frames
from ._settings import is_silent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

_DEPTH = 24  # frames that the library keeps of a stack: DEPTH of src/shim/sites/walk.rs
_MAY_BE_LONG = ("who", "blocks")  # requests whose answer may exceed _SHORT_BYTES
_SHORT_BYTES = 4096
_FRAMES_BYTES = 65536  # buffer for the frames of one stack

# flarena_sites of the preloaded library, after `_bind` has found it.
_ask: Callable[[bytes, Any, int], int] | None = None
_buffer: Any = None
_started = False


def start() -> None:
    """Check the library's frames, then let it read them. Idempotent. Never raises. Needs the preload."""
    global _started
    if _started:
        return
    _started = True
    try:
        # A subinterpreter must neither check the frames of another one, nor stop them when it ends.
        if not _bind() or not is_main_interpreter():
            return
        reason = obstacle_to_reading_frames() or request(f"prepare {sys.hexversion >> 16}") or _disagreement()
    except Exception as error:
        reason = f"its self-check failed ({type(error).__name__})"
    if reason:
        request("off " + reason)
        _say(f"flarena: FLARENA_SITES is off in this process: {reason}\n")
        return
    import atexit

    # Registered this early, it runs as the last one. After it the interpreter frees its threads' states.
    atexit.register(request, "stop")
    request("start")


def request(text: str) -> str | None:
    """Send one request to the library. None without the preload, and for a request that it does not know."""
    import ctypes

    if _ask is None and not _bind():
        return None
    ask = _ask
    assert ask is not None
    line = text.encode("utf-8", "replace")
    needed = ask(line, None, 0) if text.partition(" ")[0] in _MAY_BE_LONG else _SHORT_BYTES
    buffer = ctypes.create_string_buffer(max(needed, 0) + _SHORT_BYTES)
    if ask(line, buffer, len(buffer)) < 0:
        return None
    return buffer.value.decode("utf-8", "replace")


def _bind() -> bool:
    """Find the library's function. False without the preload."""
    global _ask, _buffer
    import ctypes

    try:
        function = ctypes.CDLL(None).flarena_sites
    except (AttributeError, OSError, TypeError):
        return False
    function.restype = ctypes.c_int
    function.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)
    _ask = function
    _buffer = ctypes.create_string_buffer(_FRAMES_BYTES)
    return True


# The self-check


def _frames_of_python(frame: Any) -> list[str]:
    lines: list[str] = []
    while frame is not None and len(lines) < _DEPTH:
        code = frame.f_code
        lines.append(f"{code.co_filename}\t{frame.f_lineno}\t{getattr(code, 'co_qualname', code.co_name)}")
        frame = frame.f_back
    return lines


def _frames_of_library() -> list[str]:
    return str(_buffer.value.decode("utf-8", "replace")).splitlines()


class _Comparison:
    """Compares both results for some shapes of stacks. Each shape calls `compare` at its innermost point."""

    def __init__(self) -> None:
        self.count = 0
        self.different: list[str] = []

    def compare(self, shape: str) -> None:
        ask = _ask
        assert ask is not None
        # In one line, so that this frame has the same line number in both results.
        pair = ask(b"frames", _buffer, _FRAMES_BYTES), _frames_of_python(sys._getframe())
        self.count += 1
        if [_comparable(line) for line in pair[1]] != [_comparable(line) for line in _frames_of_library()]:
            self.different.append(shape)


def _comparable(line: str) -> str:
    # The library keeps the end of a long name and drops control characters. So compare the ends of names.
    file, number, name = line.rsplit("\t", 2)
    return f"{file[-60:]}\t{number}\t{name[-60:]}" if line.isascii() else number


def _disagreement() -> str | None:
    """The shapes for which the results differ, as a reason to leave sites off, or None."""
    comparison = _Comparison()
    shapes = (_function, _recursion, _generator, _coroutine, _callback, _thread)
    for shape in shapes:
        shape(comparison)
    if comparison.different:
        different = ", ".join(comparison.different)
        return f"the frames of Python {sys.version.split()[0]} were not read correctly ({different})"
    if comparison.count < len(shapes):
        return "its self-check did not run to the end"
    return None


def _function(comparison: _Comparison) -> None:
    (
        comparison
        .compare("a function")
    )  # fmt: skip


def _recursion(comparison: _Comparison, depth: int = 30) -> None:
    if depth == 0:
        comparison.compare("recursion")
    else:
        _recursion(comparison, depth - 1)


def _generator(comparison: _Comparison) -> None:
    def inner() -> Generator[int, None, None]:
        yield 1
        comparison.compare("a generator")

    def outer() -> Generator[int, None, None]:
        yield from inner()

    for _ in outer():
        pass


def _coroutine(comparison: _Comparison) -> None:
    async def inner() -> None:
        comparison.compare("a coroutine")

    async def outer() -> None:
        await inner()

    try:
        outer().send(None)
    except StopIteration:
        pass


def _callback(comparison: _Comparison) -> None:
    class Last:
        def __del__(self) -> None:
            comparison.compare("__del__")

    def key(number: int) -> int:
        comparison.compare("a callback of C")
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
            comparison.compare("a thread")
        finally:
            done.release()

    threads.start_new_thread(body, ())
    done.acquire()


def _say(line: str) -> None:
    if is_silent(os.environ):
        return
    try:
        os.write(2, line.encode("utf-8", "replace"))
    except OSError:
        pass
