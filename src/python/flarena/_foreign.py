"""Reads of the program's objects that run none of the program's code.

A property, `__class__`, `__getattribute__`, `__eq__` or a metaclass may block, raise, or import a module. So
the functions here call only C functions of exact types: `type(x)`, slots of `type`, and methods of `dict`.
They compare objects by identity, and texts only if both are exact `str` objects.
"""

from __future__ import annotations

import builtins
import sys
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The builtins of the search for holders, which begins between two instructions of the program: a function that the
# program puts into `builtins` later could wait for one of its locks. Without the last value of an interactive session.
BUILTINS = {name: value for name, value in vars(builtins).items() if name != "_"}
__builtins__ = BUILTINS  # type: ignore[assignment]

_get_mro: Any = type.__dict__["__mro__"].__get__
_get_namespace_of_class: Any = type.__dict__["__dict__"].__get__
_get_name_of_class: Any = type.__dict__["__name__"].__get__
_get_namespace_of_module: Any = vars(types.ModuleType)["__dict__"].__get__


def _mro_of(kind: type) -> tuple[type, ...]:
    return _get_mro(kind) or (kind,)  # an extension's type may lack it


def is_subclass(kind: type, base: type) -> bool:
    """`issubclass(kind, base)` without `__subclasscheck__`."""
    return any(one is base for one in _mro_of(kind))


def is_instance(one: Any, base: type) -> bool:
    """`isinstance(one, base)` without `__class__` and `__instancecheck__`."""
    return is_subclass(type(one), base)


def items(mapping: Any) -> list[tuple[Any, Any]]:
    """The items of a dict or a subclass of it. An empty list if another thread changes it meanwhile."""
    try:
        return list(dict.items(mapping))
    except RuntimeError:
        return []


def name_of(namespace: Any, value: Any) -> str | None:
    """The name of a value in a namespace, or None."""
    return next((str.__str__(key) for key, one in items(namespace) if one is value and is_instance(key, str)), None)


def modules() -> dict[str, Any]:
    """The entries of `sys.modules` that are modules, by name."""
    return {
        name: module
        for name, module in (items(sys.modules) if is_instance(sys.modules, dict) else [])
        if type(name) is str and is_instance(module, types.ModuleType)
    }


def variables_of_modules() -> list[tuple[Any, Any]]:
    """The namespace and the value of each variable of a module, without functions, classes and modules."""
    left_out = {id(types.FunctionType), id(types.BuiltinFunctionType), id(type), id(types.ModuleType)}
    namespaces = [_get_namespace_of_module(module) for module in modules().values()]
    return [(names, value) for names in namespaces for _, value in items(names) if id(type(value)) not in left_out]


def module_namespace(module: Any) -> Any:
    """The dict of a module. Does not load a module of `importlib.util.LazyLoader`."""
    return _get_namespace_of_module(module)


def class_of_module(module: Any, name: str) -> type | None:
    """A class that a module has imported, or None."""
    namespace = None if module is None else _get_namespace_of_module(module)
    found = None if namespace is None else _entry(items(namespace), name)
    return found if is_instance(found, type) else None


def instance_namespace(one: Any) -> Any:
    """The dict with the attributes of an instance, or None. A property called `__dict__` does not run."""
    if is_instance(one, types.ModuleType):
        return _get_namespace_of_module(one)
    if is_instance(one, type):  # its `__dict__` is a view, and a class ends a chain
        return None
    descriptor = descriptor_of(type(one), "__dict__", types.GetSetDescriptorType)
    try:
        namespace = None if descriptor is None else descriptor.__get__(one)
    except Exception:  # the getter of an extension type
        return None
    return namespace if is_instance(namespace, dict) else None


def descriptor_of(kind: type, name: str, of_type: type) -> Any:
    """The descriptor of this name in a class or its bases, or None. Ignores attributes of other types."""
    found = (_entry(class_items(one), name) for one in _mro_of(kind))
    return next((descriptor for descriptor in found if type(descriptor) is of_type), None)


def slots(one: Any) -> list[tuple[str, Any]]:
    """Name and value of each slot of an instance that has a value."""
    found = []
    for kind in _mro_of(type(one)):
        for name, slot in class_items(kind):
            if type(name) is str and type(slot) is types.MemberDescriptorType:
                try:
                    found.append((name, slot.__get__(one)))
                except Exception:  # the slot has no value
                    continue
    return found


def class_items(kind: type) -> list[tuple[Any, Any]]:
    """The names and values in the body of a class."""
    try:
        return list((_get_namespace_of_class(kind) or {}).items())
    except RuntimeError:  # another thread changed it meanwhile
        return []


def type_name(one: Any) -> str:
    """The name of a class or function, else the name of the object's class."""
    if type(one) is types.FunctionType:
        return str.__str__(one.__name__)
    return str.__str__(_get_name_of_class(one if is_instance(one, type) else type(one)))


def _entry(pairs: list[tuple[Any, Any]], name: str) -> Any:
    # A lookup by hash would call `__eq__` of a key with the same hash.
    return next((value for key, value in pairs if type(key) is str and key == name), None)
