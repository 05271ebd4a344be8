"""Allocation sites: requests to the library, which reads Python's frames after the check of `_frame_check`.

If the check fails, sites stay off, with one line on stderr.
"""

from __future__ import annotations

import ctypes
import os
import sys

from . import _foreign
from ._cpython import is_main_interpreter
from ._frame_check import FRAMES_BYTES, Comparison, disagreement, obstacle_to_reading_frames
from ._settings import is_silent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__builtins__ = _foreign.BUILTINS  # type: ignore[assignment]

_MAY_BE_LONG = ("who", "blocks")  # requests whose answer may exceed _SHORT_BYTES
_SHORT_BYTES = 4096
_CHAR = ctypes.c_char

# flarena_sites of the preloaded library, after `_bind` has found it.
_ask: Callable[[bytes, Any, int], int] | None = None
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
        reason = obstacle_to_reading_frames() or request(f"prepare {sys.hexversion >> 16}") or _check()
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


def _check() -> str | None:
    """Why the library does not read this interpreter's frames correctly, or None."""
    assert _ask is not None
    return disagreement(Comparison(_ask, ctypes.create_string_buffer(FRAMES_BYTES)))


def request(text: str) -> str | None:
    """Send one request to the library. None without the preload, and for a request that it does not know."""
    if _ask is None and not _bind():
        return None
    ask = _ask
    assert ask is not None
    line = text.encode("utf-8", "replace")
    needed = ask(line, None, 0) if text.partition(" ")[0] in _MAY_BE_LONG else _SHORT_BYTES
    buffer = (_CHAR * (max(needed, 0) + _SHORT_BYTES))()
    if ask(line, buffer, len(buffer)) < 0:
        return None
    return buffer.value.decode("utf-8", "replace")


def _bind() -> bool:
    """Find the library's function. False without the preload."""
    global _ask
    try:
        function = ctypes.CDLL(None).flarena_sites
    except (AttributeError, OSError, TypeError):
        return False
    function.restype = ctypes.c_int
    function.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)
    _ask = function
    return True


def _say(line: str) -> None:
    if is_silent(os.environ):
        return
    try:
        os.write(2, line.encode("utf-8", "replace"))
    except OSError:
        pass
