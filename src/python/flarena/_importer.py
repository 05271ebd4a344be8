"""Runs a hook right after NVFlare, Flower or OpenFL imports a module that has one (HOOKS in `_activate`).

The hook runs before any other module binds a name from the hooked one, so every caller sees the wrapper.
The finder asks the other finders for the module and wraps its loader for that one load.
"""

from __future__ import annotations

import importlib
import sys

from ._settings import warn_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


def run_hook(module: ModuleType, owner: str, name: str) -> None:
    """Run the hook `name` of the module `owner` of this package. Never raises."""
    try:
        getattr(importlib.import_module(f"{__package__}.{owner}"), name)(module)
    except Exception as error:
        warn_once(f"the hook of {module.__name__}", error)


def find_hooked(
    except_finder: object, hook: tuple[str, str], name: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    """The module's spec from the finders but `except_finder`, with a loader that runs the hook. Never raises."""
    try:
        spec = _spec_of_others(except_finder, name, path, target)
        if spec is None or not hasattr(spec.loader, "exec_module"):
            return None
        spec.loader = HookLoader(spec.loader, hook)  # type: ignore[assignment]
        return spec
    except Exception as error:
        warn_once(f"finding {name}", error)
        return None  # the other finders import the module without its hook


def _spec_of_others(
    except_finder: object, name: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    for finder in list(sys.meta_path):
        if finder is not except_finder and hasattr(finder, "find_spec"):
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return spec
    return None


class HookLoader:
    """Replaces a module's loader for one load. Afterwards the module refers to its real loader only."""

    def __init__(self, real: Any, hook: tuple[str, str]) -> None:
        self._real = real
        self._hook = hook

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        create = getattr(self._real, "create_module", None)
        return create(spec) if create else None

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._real
        if module.__spec__ is not None:
            module.__spec__.loader = self._real
        self._real.exec_module(module)
        run_hook(module, *self._hook)
