"""The parts of the search for holders and of the frame check that depend on CPython's internals.

They rest on facts about CPython that its documentation does not promise: how a frame keeps its variables,
which containers the collector lists, and where an object's memory begins.
"""

from __future__ import annotations

import gc
import sys
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CO_OPTIMIZED = 1  # flag of a function's code: its variables are its own, not a module's namespace


# Frames


def obstacle_to_reading_frames() -> str | None:
    """Why the library cannot read this interpreter's frames, or None if it may try."""
    if sys.implementation.name != "cpython":
        return f"{sys.implementation.name} is not CPython"
    if not getattr(sys, "_is_gil_enabled", bool)() and hasattr(sys, "_is_gil_enabled"):
        return "this Python is free-threaded"
    return None


class RunningLocals:
    """The variables of every running function. `gc.get_referrers` does not find them.

    It refers to the values until `forget` is called.
    """

    def __init__(self, excluded_modules: tuple[str, ...]) -> None:
        """Skips the functions of `excluded_modules`."""
        self.entries: list[tuple[types.FrameType, str, Any]] = []
        self._excluded = excluded_modules
        own = sys._getframe()
        for frame in list(sys._current_frames().values()):
            self._add_stack(frame)
        del own, frame

    def _add_stack(self, frame: types.FrameType | None) -> None:
        while frame is not None:
            if not self.is_excluded(frame) and frame.f_code.co_flags & _CO_OPTIMIZED:
                variables = frame.f_locals
                self.entries += [(frame, name, value) for name, value in variables.items()]
                # Before 3.13 the frame keeps this copy, which keeps all values alive. Three references mean
                # that the frame, this function and the argument of getrefcount are the only ones.
                if sys.version_info < (3, 13) and sys.getrefcount(variables) <= 3:
                    variables.clear()
            frame = frame.f_back

    def is_excluded(self, frame: types.FrameType) -> bool:
        return frame.f_globals.get("__name__") in self._excluded

    def holder_of(self, held: Any) -> tuple[types.FrameType, str] | None:
        return next(((frame, name) for frame, name, value in self.entries if value is held), None)

    def forget(self) -> None:
        self.entries.clear()


# Objects


def is_untracked_container(one: Any) -> bool:
    """True for a dict or tuple of numbers, texts and arrays only: CPython's collector does not list those."""
    return type(one) in (dict, tuple) and not gc.is_tracked(one)


class LargeKinds:
    """The types whose objects own large memory, and the address of that memory."""

    def __init__(self) -> None:
        self._array = getattr(sys.modules.get("numpy"), "ndarray", ())
        self._tensor = getattr(sys.modules.get("torch"), "Tensor", ())
        self._is_large: dict[type, bool] = {}

    def is_large(self, kind: type) -> bool:
        large = self._is_large.get(kind)
        if large is None:
            large = issubclass(kind, (bytes, bytearray, self._array or bytes, self._tensor or bytes))
            self._is_large[kind] = large
        return large

    def address_of(self, held: Any) -> int | None:
        """The address of the object's memory. For bytes that is the object itself, which begins its block."""
        if not self.is_large(type(held)):
            return None
        try:
            if isinstance(held, bytes):
                return id(held)
            if isinstance(held, bytearray):
                import ctypes

                return ctypes.addressof(ctypes.c_char.from_buffer(held)) if held else None
            if self._array and isinstance(held, self._array):
                return int(held.__array_interface__["data"][0])
            return int(held.untyped_storage().data_ptr())
        except Exception:  # a subclass that lacks the interface
            return None
