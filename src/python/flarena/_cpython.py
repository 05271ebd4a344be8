"""The parts of the search for holders that depend on CPython's internals.

They rest on facts about CPython that its documentation does not promise: how a frame keeps its variables,
which containers the collector lists, and where an object's memory begins. Nothing here runs code of the
program (see `_foreign`).
"""

from __future__ import annotations

import sys
import types
from ctypes import addressof, c_char, c_void_p, pythonapi, sizeof
from gc import is_tracked
from sys import _current_frames, _getframe, getrefcount

from . import _foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__builtins__ = _foreign.BUILTINS  # type: ignore[assignment]

_CO_OPTIMIZED = 1  # flag of a function's code: its variables are its own, not a module's namespace


# Interpreters


def _interpreter_function(name: str, arguments: int = 0) -> Any:
    try:
        found: Any = pythonapi[f"PyInterpreterState_{name}"]
    except AttributeError:  # not CPython
        return lambda *_: None
    found.restype = c_void_p
    found.argtypes = (c_void_p,) * arguments
    return found


# Looked up here, because the search for holders may not wait for the loader's lock.
_this_interpreter = _interpreter_function("Get")
_main_interpreter = _interpreter_function("Main")
_first_interpreter = _interpreter_function("Head")
_next_interpreter = _interpreter_function("Next", 1)


def is_main_interpreter() -> bool:
    """False in a subinterpreter, and if this is not CPython."""
    this = _this_interpreter()
    return this is not None and this == _main_interpreter()


def _is_only_interpreter() -> bool:
    return _next_interpreter(_first_interpreter()) is None


# Frames


class RunningLocals:
    """The variables of every running function. `gc.get_referrers` does not find them.

    It refers to the values until `forget` is called.
    """

    def __init__(self, excluded_modules: tuple[str, ...]) -> None:
        """Skips the functions of `excluded_modules`."""
        self.entries: list[tuple[types.FrameType, str, Any]] = []
        modules = _foreign.modules()
        # By identity: a lookup of __name__ in the globals could call `__eq__` of a key.
        self._excluded = {id(_foreign.module_namespace(modules[name])) for name in excluded_modules if name in modules}
        own = _getframe()
        # The list has the frames of all interpreters. Another one may run meanwhile, with a lock of its own.
        frames = list(_current_frames().values()) if _is_only_interpreter() else [own]
        for frame in frames:
            self._add_stack(frame)
        frames.clear()
        del own, frame

    def _add_stack(self, frame: types.FrameType | None) -> None:
        callee: list[Any] = []  # values of the function that the frame called
        while frame is not None:
            values: list[Any] = []
            if not self.is_excluded(frame) and frame.f_code.co_flags & _CO_OPTIMIZED:
                # Before 3.13 f_locals is a copy, and a tracer that returns writes it back to the variables.
                if sys.version_info >= (3, 13) or not _is_traced(frame, callee):
                    values = self._add_frame(frame)
            callee, frame = values, frame.f_back
        callee.clear()

    def _add_frame(self, frame: types.FrameType) -> list[Any]:
        variables = frame.f_locals
        pairs = list(variables.items())
        self.entries += [(frame, name, value) for name, value in pairs]
        # Before 3.13 the frame keeps this copy, which keeps all values alive. Three references mean
        # that the frame, this function and the argument of getrefcount are the only ones.
        if sys.version_info < (3, 13) and getrefcount(variables) <= 3:
            variables.clear()
        return [value for _, value in pairs]

    def is_excluded(self, frame: types.FrameType) -> bool:
        return id(frame.f_globals) in self._excluded

    def holder_of(self, held: Any) -> tuple[types.FrameType, str] | None:
        return next(((frame, name) for frame, name, value in self.entries if value is held), None)

    def forget(self) -> None:
        self.entries.clear()


def _is_traced(frame: types.FrameType, callee: list[Any]) -> bool:
    """True if a tracer or profiler may be running for this frame: then it has the frame as an argument.

    callee  values of the variables of the function that the frame called
    """
    if frame.f_trace is not None:
        return True
    arguments = [part for value in callee if type(value) is tuple for part in value]
    return any(value is frame for value in (*callee, *arguments))


# Objects


def is_untracked_container(one: Any) -> bool:
    """True for a dict or tuple of numbers, texts and arrays only: CPython's collector does not list those."""
    return (type(one) is dict or type(one) is tuple) and not is_tracked(one)


class LargeKinds:
    """The types whose objects own large memory, and the address of that memory."""

    def __init__(self) -> None:
        modules = _foreign.modules()
        self._array = _foreign.class_of_module(modules.get("numpy"), "ndarray")
        tensor = _foreign.class_of_module(modules.get("torch"), "Tensor")
        parameter = _foreign.class_of_module(modules.get("torch.nn.parameter"), "Parameter")
        # Other subclasses of Tensor may have no memory, and may run code of the program in each method.
        self._tensors = tuple(kind for kind in (tensor, parameter) if kind is not None)
        self._no_override = _foreign.class_of_module(modules.get("torch._C"), "DisableTorchFunction")
        self._start_offset = _bytearray_start_offset()
        self._is_large: dict[int, tuple[type, bool]] = {}  # by id, because a metaclass may define __hash__
        self._small: set[int] = set()  # ids of types whose objects are neither large nor untracked containers

    def is_large(self, kind: type) -> bool:
        known = self._is_large.get(id(kind))
        if known is None:
            bases = (bytes, bytearray, self._array)
            large = any(base is not None and _foreign.is_subclass(kind, base) for base in bases)
            known = self._is_large[id(kind)] = kind, large or any(kind is one for one in self._tensors)
            if not known[1] and kind is not dict and kind is not tuple:
                self._small.add(id(kind))
        return known[1]

    def without_small(self, objects: list[Any]) -> list[Any]:
        """The objects without those of types that `is_large` has refused, quickly."""
        small = self._small
        return [one for one in objects if id(type(one)) not in small]

    def address_of(self, held: Any) -> int | None:
        """The address of the object's memory. For bytes that is the object itself, which begins its block."""
        if not self.is_large(type(held)):
            return None
        if _foreign.is_instance(held, bytes):
            return id(held)
        if _foreign.is_instance(held, bytearray):
            return None if self._start_offset is None else _word_at(id(held) + self._start_offset)
        array = self._array
        try:
            if array is not None and _foreign.is_instance(held, array):
                interface = _foreign.descriptor_of(array, "__array_interface__", types.GetSetDescriptorType)
                return int(interface.__get__(held)["data"][0])
            return self._tensor_address(held)
        except Exception:  # a tensor without memory
            return None

    def _tensor_address(self, held: Any) -> int:
        data_ptr = _foreign.descriptor_of(type(held), "data_ptr", types.MethodDescriptorType)
        # A TorchFunctionMode of the program would otherwise run for each method.
        with self._no_override():  # type: ignore[misc]
            return int(data_ptr(held))


def _word_at(address: int) -> int | None:
    return c_void_p.from_address(address).value


def _bytearray_start_offset() -> int | None:
    """Where a bytearray object has the address of its first byte, or None if that is not certain.

    An exported buffer would have that address, too. But the program could not resize the bytearray meanwhile.
    """
    offsets = set()
    for cut in (3, 50):
        sample = bytearray(200)
        del sample[:cut]  # now its first byte is not the first byte of its block
        address = addressof(c_char.from_buffer(sample))
        words = range(0, bytearray.__basicsize__, sizeof(c_void_p))
        offsets.add(next((offset for offset in words if _word_at(id(sample) + offset) == address), None))
    return offsets.pop() if len(offsets) == 1 else None
