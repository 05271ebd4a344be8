"""Whether a full garbage collection may run here and now, and which exceptions belong to the program.

The library also runs this file as text when it requests a collection itself (src/shim/governor). So it
imports no other module of the package, and no other code than that of the interpreter itself. It runs
no code of the program: an attribute of a signal handler may block, raise, or count its reads.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _builtin_module(name: str) -> "Any":
    """A module of the interpreter itself. An import statement would first ask the program's finders for it."""
    importer: Any = sys.modules["_frozen_importlib"]
    return sys.modules.get(name) or importer._load(importer.BuiltinImporter.find_spec(name))


_signal = _builtin_module("_signal")
gc = _builtin_module("gc")
partial = _builtin_module("_functools").partial

_MOST_WRAPPERS = 8  # around a handler's function: partials, methods, callable objects


def may_collect() -> bool:
    """False if the program has disabled collections, if Python is ending, and inside a signal handler."""
    return gc.isenabled() and not _is_ending() and not _is_in_signal_handler()


def belongs_to_program(error: BaseException) -> bool:
    """True if an exception must reach the program.

    Python runs a signal handler between any two instructions, also in the code of this package. A handler that
    raises, such as one that limits the time of a call, expects the program to see its exception.
    """
    if not issubclass(type(error), Exception):  # KeyboardInterrupt, SystemExit, a timeout of gevent
        return True
    handlers = _handler_codes()
    step = _traceback_of(error)
    while step is not None:
        if id(step.tb_frame.f_code) in handlers:
            return True
        step = step.tb_next
    return False


def _is_ending() -> bool:
    if sys.is_finalizing():
        return True
    threading = sys.modules.get("threading")
    try:
        # Python ends its main thread first, then waits for the others, then runs the atexit functions.
        return threading is not None and not threading.main_thread().is_alive()
    except Exception as error:  # the program has replaced the module
        if belongs_to_program(error):
            raise
        return True


def _handler_codes() -> "set[int]":
    """The ids of the code of all signal handlers."""
    handlers = set()
    for number in range(1, _signal.NSIG):
        try:
            handler = _signal.getsignal(number)
        except ValueError:  # the C library reserves this number
            continue
        if callable(handler):
            handlers.add(id(_code_of(handler)))
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
    function: Any = type(_code_of)
    method: Any = type(_Any().method)
    for _ in range(_MOST_WRAPPERS):
        if type(handler) is function:
            return handler.__code__
        if type(handler) is method:
            handler = handler.__func__
            continue
        owner, call = _call_of(type(handler))
        handler = _partial_function(handler) if owner is partial else call
    return None


class _Any:
    def method(self) -> None: ...


_traceback_of: "Any" = vars(BaseException)["__traceback__"].__get__
_mro_of: "Any" = type.__dict__["__mro__"].__get__
_namespace_of: "Any" = type.__dict__["__dict__"].__get__
_partial_function: "Any" = vars(partial)["func"].__get__


def _call_of(kind: type) -> "tuple[Any, Any]":
    """The class that defines `__call__` for the instances of a class, and the definition."""
    for one in _mro_of(kind):
        # A lookup by hash would call `__eq__` of a key with the same hash.
        for name, value in list(_namespace_of(one).items()):
            if type(name) is str and name == "__call__":
                return one, value
    return None, None
