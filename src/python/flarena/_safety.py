"""Whether a full garbage collection may run here and now.

The library runs this very text, too, when it asks for a collection by itself (src/shim/governor), so it
uses no other module of the package, and of Python's only those that every process has loaded.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import gc
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def may_collect() -> bool:
    """False when the program turned collections off, when Python ends, and inside a signal handler."""
    return gc.isenabled() and not _is_ending() and not _in_signal_handler()


def _is_ending() -> bool:
    if sys.is_finalizing():
        return True
    threading = sys.modules.get("threading")
    # Python ends its main thread first, then waits for the others, then runs the atexit functions.
    return threading is not None and not threading.main_thread().is_alive()


def _in_signal_handler() -> bool:
    """True when a function that handles a signal is among the callers of this thread."""
    handlers = set()
    for number in range(1, _signal.NSIG):
        try:
            handler = _signal.getsignal(number)
        except ValueError:  # a number that the C library keeps for itself
            continue
        if callable(handler):
            handlers.add(id(_code_of(handler)))
    frame = sys._getframe(1)
    while frame is not None:
        if id(frame.f_code) in handlers:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _code_of(handler: Any) -> Any:
    """The code behind a function, a method, a partial, or an object that can be called; None if there is none."""
    for _ in range(8):
        code = getattr(handler, "__code__", None)
        if code is not None:
            return code
        handler = getattr(handler, "__func__", None) or getattr(handler, "func", None) or type(handler).__call__
    return None
