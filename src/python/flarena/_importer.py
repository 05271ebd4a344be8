"""Runs a hook right after NVFlare or Flower itself imports one of its modules, before anyone binds a name from it.

A finder first in sys.meta_path sees each import. For the names in HOOKS it lets the other finders find the
module, and wraps the loader for that one load; for all others it costs a dictionary lookup. Neither is ever
imported from here.
"""

from __future__ import annotations

import sys

from ._log import note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

# module -> name of its hook
HOOKS = {
    "nvflare.client.api": "hook_client_api",
    "nvflare.apis.utils.event": "hook_events",
    "nvflare.fuel.utils.memory_utils": "hook_cleanup",
    "flwr.clientapp.client_app": "hook_client_app",
    "flwr.client.client_app": "hook_client_app",  # until 1.22
}


def install() -> None:
    """Hook the modules of HOOKS as they are imported, and now those that already are."""
    if any(isinstance(finder, HookFinder) for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, HookFinder())
    for name in HOOKS:
        if name in sys.modules:
            run_hook(sys.modules[name])


def run_hook(module: ModuleType) -> None:
    try:
        if module.__name__.startswith("flwr."):
            from . import _flower

            hooks: ModuleType = _flower
        else:
            from . import _stages

            hooks = _stages

        getattr(hooks, HOOKS[module.__name__])(module)
    except Exception as error:
        note(f"the hook of {module.__name__}", error)


class HookFinder:
    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in HOOKS:
            return None
        try:
            spec = self._real_spec(name, path, target)
            if spec is None or not hasattr(spec.loader, "exec_module"):
                return None
            spec.loader = HookLoader(spec.loader)  # type: ignore[assignment]
            return spec
        except Exception as error:
            note(f"finding {name}", error)
            return None  # the import goes on as if we were not here

    def _real_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        for finder in list(sys.meta_path):
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    return spec
        return None


class HookLoader:
    """Stands in for a module's loader during one load, then leaves no trace of itself in the module."""

    def __init__(self, real: Any) -> None:
        self._real = real

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
        run_hook(module)
