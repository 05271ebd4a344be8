"""Marks the end of a send() that SIGTERM interrupts.

NVFlare 2.7 and 2.8 end an external trainer with SIGTERM while its last send() waits for the server to
fetch the result. That send() never returns, so the job's last round would have no "send" marker.
Between `arm()` and `disarm()` SIGTERM emits the marker first and then ends the process as usual.

A program that handles SIGTERM keeps its handler. Python runs handlers in the main thread, so a send()
in another thread is not covered.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import signal
import threading
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class MarkOnSigterm:
    """Calls `emit` if SIGTERM comes between `arm()` and `disarm()` in this process. Forked children do not."""

    def __init__(self, emit: Callable[[], Any]) -> None:
        self._emit = emit
        self._pid = os.getpid()

    def arm(self) -> None:
        handler = _signal.getsignal(signal.SIGTERM)
        if _is_main_thread() and type(handler) is int and handler == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._on_signal)

    def disarm(self) -> None:
        # The program may have installed its own handler in between. That one stays.
        # Without `==` and signal.getsignal, which call `__eq__` of the program's handler.
        handler = _signal.getsignal(signal.SIGTERM)
        if _is_main_thread() and type(handler) is types.MethodType and handler.__self__ is self:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _on_signal(self, number: int, frame: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if os.getpid() == self._pid:
            self._emit()
        os.kill(os.getpid(), signal.SIGTERM)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
