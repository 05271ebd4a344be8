"""Runs a hook right after NVFlare, Flower or OpenFL imports one of the modules in HOOKS.

The hook runs before any other module binds a name from the hooked one, so every caller sees the wrapper.
A finder at the front of sys.meta_path sees each import. For a name in HOOKS it asks the other finders for
the module and wraps its loader for that one load. For any other name it costs one dictionary lookup.

This package never imports NVFlare, Flower or OpenFL itself.
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

# Module -> the module of this package that hooks it, and the hook's name.
HOOKS = {
    "nvflare.client.api": ("_nvflare", "hook_client_api"),
    "nvflare.apis.utils.event": ("_nvflare", "hook_events"),
    "nvflare.fuel.utils.memory_utils": ("_nvflare", "hook_cleanup"),
    "nvflare.collab.api.app": ("_collab", "hook_app"),
    "nvflare.collab.api.group": ("_collab", "hook_group"),
    "nvflare.collab.api.proxy": ("_collab", "hook_proxy"),
    "nvflare.app_opt.xgboost.histogram_based_v2.runners.xgb_client_runner": ("_xgboost", "hook_client_runner"),
    "openfl.callbacks.callback_list": ("_openfl", "hook_callback_list"),
    "flwr.serverapp.strategy.strategy": ("_flower", "hook_strategy"),
    "flwr.server.server": ("_flower", "hook_server"),
    "flwr.clientapp.client_app": ("_flower", "hook_client_app"),
    "flwr.client.client_app": ("_flower", "hook_client_app"),  # until 1.22
}


def install() -> None:
    """Hook each module of HOOKS when it is imported, and now if it is already. Idempotent."""
    if any(type(finder) is HookFinder for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, HookFinder())
    for name in HOOKS:
        if name in sys.modules:
            run_hook(sys.modules[name])


def run_hook(module: ModuleType) -> None:
    """Run the hook of a module in HOOKS. Never raises."""
    try:
        owner, name = HOOKS[module.__name__]
        getattr(importlib.import_module(f"{__package__}.{owner}"), name)(module)
    except Exception as error:
        warn_once(f"the hook of {module.__name__}", error)


class HookFinder:
    """A finder for sys.meta_path that finds the modules of HOOKS through the other finders."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in HOOKS:
            return None
        try:
            spec = self._spec_of_others(name, path, target)
            if spec is None or not hasattr(spec.loader, "exec_module"):
                return None
            spec.loader = HookLoader(spec.loader)  # type: ignore[assignment]
            return spec
        except Exception as error:
            warn_once(f"finding {name}", error)
            return None  # the other finders import the module without its hook

    def _spec_of_others(self, name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        for finder in list(sys.meta_path):
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    return spec
        return None


class HookLoader:
    """Replaces a module's loader for one load. Afterwards the module refers to its real loader only."""

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
