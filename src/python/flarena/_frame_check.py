"""The check before the library reads Python's frames.

The library reads frames out of the interpreter's memory, whose layout differs between versions of CPython.
So the check compares six shapes of stacks: the library's result, read by a system call that survives a
wrong address, against `sys._getframe`.

The library also runs this file as text, before src/shim/governor/start_late.py, between two instructions of the main
thread. Then the program may hold any of its locks, and another thread the loader's. So this code waits for no thread,
looks up no symbol, and imports nothing but modules in C that the library knows.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

_DEPTH = 24  # frames that the library keeps of a stack: DEPTH of src/sites/walk.rs
FRAMES_BYTES = 65536  # buffer for the frames of one stack


def obstacle_to_reading_frames() -> "str | None":
    """Why the library cannot read this interpreter's frames, or None if it may try."""
    if sys.implementation.name != "cpython":
        return f"{sys.implementation.name} is not CPython"
    if not getattr(sys, "_is_gil_enabled", bool)() and hasattr(sys, "_is_gil_enabled"):
        return "this Python is free-threaded"
    return None


def _frames_of_python(frame: "Any") -> "list[str]":
    lines: list[str] = []
    while frame is not None and len(lines) < _DEPTH:
        code = frame.f_code
        lines.append(f"{code.co_filename}\t{frame.f_lineno}\t{getattr(code, 'co_qualname', code.co_name)}")
        frame = frame.f_back
    return lines


class Comparison:
    """Compares both results for some shapes of stacks. Each shape calls `compare` at its innermost point."""

    def __init__(self, ask: "Callable[[bytes, Any, int], int]", buffer: "Any") -> None:
        """`ask` is the library's flarena_sites, and `buffer` a ctypes buffer of FRAMES_BYTES."""
        self.count = 0
        self.different: list[str] = []
        self._ask = ask
        self._buffer = buffer

    def compare(self, shape: str) -> None:
        # In one line, so that this frame has the same line number in both results.
        pair = self._ask(b"frames", self._buffer, FRAMES_BYTES), _frames_of_python(sys._getframe())
        self.count += 1
        of_library = self._buffer.value.decode("utf-8", "replace").splitlines()
        if [_comparable(line) for line in pair[1]] != [_comparable(line) for line in of_library]:
            self.different.append(shape)


def _comparable(line: str) -> str:
    # The library keeps the end of a long name and drops control characters. So compare the ends of names.
    file, number, name = line.rsplit("\t", 2)
    return f"{file[-60:]}\t{number}\t{name[-60:]}" if line.isascii() else number


def disagreement(comparison: Comparison, with_thread: bool = True) -> "str | None":
    """The shapes for which the results differ, as a reason to leave sites off, or None.

    with_thread  one shape is in a thread of its own, and is waited for
    """
    shapes = [_function, _recursion, _generator, _coroutine, _callback]
    if with_thread:
        shapes.append(_thread)
    for shape in shapes:
        shape(comparison)
    if comparison.different:
        different = ", ".join(comparison.different)
        return f"the frames of Python {sys.version.split()[0]} were not read correctly ({different})"
    if comparison.count < len(shapes):
        return "its self-check did not run to the end"
    return None


def _function(comparison: Comparison) -> None:
    (
        comparison
        .compare("a function")
    )  # fmt: skip


def _recursion(comparison: Comparison, depth: int = 30) -> None:
    if depth == 0:
        comparison.compare("recursion")
    else:
        _recursion(comparison, depth - 1)


def _generator(comparison: Comparison) -> None:
    def inner() -> "Generator[int, None, None]":
        yield 1
        comparison.compare("a generator")

    def outer() -> "Generator[int, None, None]":
        yield from inner()

    for _ in outer():
        pass


def _coroutine(comparison: Comparison) -> None:
    async def inner() -> None:
        comparison.compare("a coroutine")

    async def outer() -> None:
        await inner()

    try:
        outer().send(None)
    except StopIteration:
        pass


def _callback(comparison: Comparison) -> None:
    class Last:
        def __del__(self) -> None:
            comparison.compare("__del__")

    def key(number: int) -> int:
        comparison.compare("a callback of C")
        return number

    last = Last()
    del last
    sorted((1,), key=key)


def _thread(comparison: Comparison) -> None:
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
