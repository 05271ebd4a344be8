"""Whether a full garbage collection may run here and now, and which exceptions belong to the program.

The library also runs this file as text when it requests a collection itself (src/shim/governor). Then its builtins
and its imports are the interpreter's own functions, also where the program has replaced them
(src/shim/python/originals.rs). This code runs no code of the program: an attribute of a signal handler may block,
raise, or count its reads. So it uses nothing but builtins, modules that the library knows, and methods of exact types.
"""

import _signal  # type: ignore[import-not-found]
import gc
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST_WRAPPERS = 8  # around a handler's function: partials, methods, callable objects

_mro_of: "Any" = type.__dict__["__mro__"].__get__
_namespace_of: "Any" = type.__dict__["__dict__"].__get__
_namespace_of_module: "Any" = vars(type(sys))["__dict__"].__get__
_traceback_of: "Any" = BaseException.__dict__["__traceback__"].__get__
# The types of these are the types of what a class in C code has.
_method: "Any" = str.__dict__["join"]
_operator: "Any" = str.__dict__["__len__"]
_member: "Any" = BaseException.__dict__["__suppress_context__"]
_property: "Any" = BaseException.__dict__["__dict__"]


def may_collect() -> bool:
    """False if the program has disabled collections, if Python is ending, and inside a signal handler."""
    return gc.isenabled() and not _is_ending() and not _is_in_signal_handler()


def belongs_to_program(error: BaseException) -> bool:
    """True if an exception must reach the program.

    Python runs a signal handler between any two instructions, also in the code of this package. A handler that
    raises, such as one that limits the time of a call, expects the program to see its exception.
    """
    if not _is_subclass(type(error), Exception):  # KeyboardInterrupt, SystemExit, a timeout of gevent
        return True
    handlers = _handler_codes()
    step = _traceback_of(error)
    while step is not None:
        if id(step.tb_frame.f_code) in handlers:
            return True
        step = step.tb_next
    return False


def _is_ending() -> bool:
    """True once the main thread has ended: Python then waits for the other threads, and runs the atexit functions.

    Reads the attributes that `threading.main_thread().is_alive()` reads, without a call that the program may have
    replaced. True also if they are not where they should be.
    """
    if sys.is_finalizing():
        return True
    threading = sys.modules.get("threading")
    if threading is None:
        return False
    if not _is_subclass(type(threading), type(sys)):
        return True
    main = _namespace_of_module(threading).get("_main_thread")
    attributes = _in_class(type(main), "__dict__")
    if type(attributes) is not type(_property):
        return True
    of_main = attributes.__get__(main)
    if "_is_stopped" in of_main:  # before Python 3.13
        return of_main["_is_stopped"] is not False
    for name in ("_handle", "_os_thread_handle"):
        handle = of_main.get(name)
        is_done = _in_class(type(handle), "is_done")
        if type(is_done) is type(_method):
            return is_done(handle) is not False
    return True


def _handler_codes() -> "set[int]":
    """The ids of the code of all signal handlers."""
    handlers = set()
    for number in range(1, _signal.NSIG):
        try:
            handler = _signal.getsignal(number)
        except ValueError:  # the C library reserves this number
            continue
        if handler is None or type(handler) is int:  # a function in C, the default, or ignored
            continue
        code = _code_of(handler)
        if code is not None:
            handlers.add(id(code))
    return handlers


def _is_in_signal_handler() -> bool:
    """True if one of this thread's callers is the function of a signal handler."""
    handlers = _handler_codes()
    frame = sys._getframe(1)
    while frame is not None:
        if id(frame.f_code) in handlers:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _code_of(handler: "Any") -> "Any":
    """The code of a function, method, partial or callable object. None for a callable written in C."""
    function = type(_code_of)
    for _ in range(_MOST_WRAPPERS):
        kind = type(handler)
        if kind is function:
            return handler.__code__
        inner = _in_class(kind, "__func__")  # of a method
        if inner is None and type(_in_class(kind, "__call__")) is type(_operator):
            inner = _in_class(kind, "func")  # of a partial
        if type(inner) is type(_member):
            handler = inner.__get__(handler)
        else:
            handler = _in_class(kind, "__call__")
    return None


def _is_subclass(kind: type, base: type) -> bool:
    for one in _mro_of(kind):
        if one is base:
            return True
    return False


def _in_class(kind: type, name: str) -> "Any":
    """What a class or one of its bases defines under this name, or None."""
    for one in _mro_of(kind):
        # A lookup by hash would call `__eq__` of a key with the same hash.
        for key, value in list(_namespace_of(one).items()):
            if type(key) is str and key == name:
                return value
    return None
