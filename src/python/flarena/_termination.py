"""A last marker for a trainer that is terminated inside send().

NVFlare 2.7 and 2.8 end an external trainer with SIGTERM while its last send() still waits for the server
to fetch the result: send() never returns, and the job's last round would have no marker. So for the time
of a send() SIGTERM emits the marker first, then ends the process as it would have. Only where nobody else
handles the signal, and only in the main thread, where Python runs its handlers.
"""

from __future__ import annotations

import os
import signal
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class LastWord:
    """Calls `emit` if SIGTERM comes between `arm()` and `disarm()`, in this process, not in a forked child."""

    def __init__(self, emit: Callable[[], Any]) -> None:
        self._emit = emit
        self._pid = os.getpid()

    def arm(self) -> None:
        in_main_thread = threading.current_thread() is threading.main_thread()
        if in_main_thread and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._on_signal)

    def disarm(self) -> None:
        # The handler may be another by now: then it is not ours to take away.
        in_main_thread = threading.current_thread() is threading.main_thread()
        if in_main_thread and signal.getsignal(signal.SIGTERM) == self._on_signal:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _on_signal(self, number: int, frame: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if os.getpid() == self._pid:
            self._emit()
        os.kill(os.getpid(), signal.SIGTERM)
