"""Drops values that NVFlare's server holds after their last read (docs/nvflare-memory.md).

- A context keeps the first GLOBAL_MODEL that it has seen. Each read of a sticky value first asks the manager of the
  contexts, so the old value cannot be read. One such read replaces it by the model of today.
- NVFlare's model controllers keep the context of the last result, and with it the result. It is replaced by its
  headers, which log lines name. That needs a known version, and components whose code cannot read the result.
"""

from __future__ import annotations

import functools
import sys
import types
import weakref

from ._marking import guarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MODEL, _SHAREABLE, _HEADERS = "global_model", "__shareable__", "__headers__"
# The result of a task; and, until 2.9 clears it, the same result for those that see it accepted.
_RESULT, _TRAINED = "__task_result__", "_training_result_"
_KNOWN_VERSIONS = ("2.7.", "2.8.", "2.9.")
_KNOWN_PACKAGES = ("nvflare", "builtins", "abc", "typing")
# A controller of the program may have these of its own. None of them gets a context.
_HARMLESS = {"__init__", "__module__", "__doc__", "__qualname__", "__firstlineno__", "__static_attributes__"}
_HARMLESS |= {"save_model_file", "load_model_file", "__abstractmethods__", "_abc_impl", "__annotations__"}
# Names with which code reads a value of a context whose key is not written beside it, or hands the context on.
_READS = {_RESULT, _TRAINED, _SHAREABLE, "TASK_RESULT", "TRAINING_RESULT", "SHAREABLE", "get_prop_detail", "_get_prop"}
_READS |= {"props", "get_prop_keys", "clone", "get_peer_context", "getattr", "vars", "__dict__"}
_READS |= {"eval", "exec", "import_module"}

# By id. Without a lock, which a fork could leave locked: each operation on the dictionary is one step of Python.
_contexts: dict[int, weakref.ref[Any]] = {}


@guarded
def refresh_models(ctx: Any) -> None:
    """Replace the old global models in this and all earlier contexts of this process."""
    if type(ctx).__module__ != "nvflare.apis.fl_context":
        return
    key = id(ctx)
    if _MODEL in ctx.props and key not in _contexts:
        _contexts[key] = weakref.ref(ctx, lambda _: _contexts.pop(key, None))
    for reference in list(_contexts.values()):
        context = reference()
        if context is not None and _MODEL in context.props:
            context.get_prop(_MODEL)


@guarded
def drop_result(ctx: Any, components: Any) -> None:
    """Replace the result that the server has processed by its headers."""
    if not _is_known_version() or not all(_cannot_read(kind) for kind in _classes(components)):
        return
    _keep_headers(ctx, _RESULT)
    _keep_headers(ctx, _TRAINED)
    _keep_headers(ctx.get_peer_context(), _SHAREABLE)


def _classes(components: Any) -> set[Any]:
    """The classes of the components of a job, and of the components that they hold, such as FedAvg's aggregator."""
    base = sys.modules["nvflare.apis.fl_component"].FLComponent
    held = [part for component in components for part in vars(component).values() if isinstance(part, base)]
    return {type(component) for component in (*components, *held)}


def _keep_headers(ctx: Any, key: str) -> None:
    value: Any = None if ctx is None else ctx.get_prop(key)
    shareable: Any = sys.modules["nvflare.apis.shareable"].Shareable
    if type(value) is not shareable:
        return
    headers = shareable()
    headers[_HEADERS] = value.get(_HEADERS)
    detail = ctx.get_prop_detail(key)
    ctx.set_prop(key, headers, private=detail["private"], sticky=detail["sticky"])


@functools.cache
def _is_known_version() -> bool:
    return str(sys.modules["nvflare"].__version__).startswith(_KNOWN_VERSIONS)


@functools.cache
def _cannot_read(component: Any) -> bool:
    """NVFlare's own classes read a result only before this. A controller of the program must inherit all that runs."""
    foreign = [owner for owner in component.__mro__ if owner.__module__.partition(".")[0] not in _KNOWN_PACKAGES]
    spec = sys.modules.get("nvflare.apis.controller_spec")
    if spec is None or issubclass(component, spec.ControllerSpec):
        return all(name in _HARMLESS for owner in foreign for name in vars(owner))
    return not any(_names(value) & _READS for owner in foreign for value in vars(owner).values())


def _names(value: Any, seen: set[int] | None = None) -> set[str]:
    """The names and texts in the code of a function, and of those inside and around it and in its file that it names.

    A module of the program, or a class in it, may read anything: it counts as `__dict__`.
    """
    value = getattr(value, "__func__", getattr(value, "fget", value))
    seen = set() if seen is None else seen
    if id(value) in seen:
        return set()
    seen.add(id(value))
    code = value if isinstance(value, types.CodeType) else getattr(value, "__code__", None)
    if code is None:
        return set()
    found = set(code.co_names) | {text for text in code.co_consts if isinstance(text, str)}
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            found |= _names(inner, seen)
    if hasattr(value, "__wrapped__"):
        found |= _names(value.__wrapped__, seen)
    for name in code.co_names:
        target = getattr(value, "__globals__", {}).get(name)
        owner = target.__name__ if isinstance(target, types.ModuleType) else getattr(target, "__module__", None)
        package = owner.partition(".")[0] if isinstance(owner, str) else "builtins"
        if isinstance(target, types.FunctionType):
            found |= _names(target, seen)
        elif package not in (*_KNOWN_PACKAGES, "flarena", "numpy", "torch", *getattr(sys, "stdlib_module_names", ())):
            found.add("__dict__")
    return found
