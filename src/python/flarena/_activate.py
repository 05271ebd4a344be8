"""Turns the hooks on when Python starts.

Two files call `activate`: the `sitecustomize.py` in hooks/, which a launcher puts on PYTHONPATH, and the
`.pth` file of the wheel (`.start` in Python 3.15 and later).

It runs in every Python process that inherits the preload, and often without compiled files. So this file is short,
imports no module that Python has not loaded, and reads the environment first. `sitecustomize.py` and `.pth` load this
file without the package. The package and its hooks are loaded when the program imports NVFlare, Flower or OpenFL.
The package itself never imports these frameworks.
"""

import os
import sys
from _frozen_importlib import _find_spec, _load  # type: ignore[attr-defined]
from _frozen_importlib_external import PathFinder  # importlib has it, too, but Python has not loaded that yet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_has_warned = False

# Module -> the module of this package that hooks it, and the hook's name.
HOOKS = {
    "nvflare.client.api": ("_nvflare", "hook_client_api"),
    "nvflare.apis.utils.event": ("_nvflare", "hook_events"),
    "nvflare.fuel.utils.memory_utils": ("_nvflare", "hook_cleanup"),
    "nvflare.fuel.f3.streaming.byte_streamer": ("_nvflare", "hook_byte_streamer"),
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


def activate() -> None:
    """Install the hooks if they have work in this process. Idempotent. Never raises."""
    try:
        if not any(type(finder) is PackageFinder for finder in sys.meta_path):
            sys.meta_path.insert(0, PackageFinder())
        environ = os.environ
        # The usual case needs no other module: a preload, with collections on because that is the default.
        is_usual = "libflarena" in environ.get("LD_PRELOAD", "") and not (
            environ.get("FLARENA_GC") or environ.get("FLARENA_SITES")
        )
        if not is_usual:
            settings = _settings()
            if settings.sites_wanted(environ):
                # The library runs _holders for a client, where an import could wait for a lock of the program.
                from . import _holders  # noqa: F401
                from ._sites import start

                start()
            elif not _are_hooks_wanted(settings):
                return
        if any(type(finder) is HookFinder for finder in sys.meta_path):
            return
        sys.meta_path.insert(0, HookFinder())
        for name in HOOKS:
            if name in sys.modules:
                from ._importer import run_hook

                run_hook(sys.modules[name], *HOOKS[name])
    except Exception as error:
        _warn_once(error)


def _settings() -> "Any":
    """The module `_settings`, loaded without the package."""
    name = "flarena._settings"
    if name in sys.modules:
        return sys.modules[name]
    spec = _find_spec(name, [_PACKAGE])
    if spec is None:
        raise ModuleNotFoundError(name)
    return _load(spec)


def _are_hooks_wanted(settings: "Any") -> bool:
    environ = os.environ
    if settings.markers_wanted(environ) or settings.jemalloc_wanted(environ):
        return True
    # Collections are on by default, and the wheel's .pth file runs in every Python of its environment.
    # Without the preload the hooks would do nothing.
    has_work = settings.collections_wanted(environ) or settings.gc_rounds(environ) > 0
    return has_work and bool(settings.is_preloaded(environ))


def _warn_once(error: Exception) -> None:
    """Write one line to stderr, without any other module of the package: it may be unreadable or deleted."""
    global _has_warned
    if _has_warned or os.environ.get("FLARENA_LOG", "").strip().lower() == "off":
        return
    _has_warned = True
    line = f"flarena: the Python hooks cannot be used ({type(error).__name__}); the program continues without them\n"
    try:
        os.write(2, line.encode("ascii", "replace"))
    except OSError:
        pass


class PackageFinder:
    """A finder for sys.meta_path that finds this package: a launcher puts only its folder hooks/ on sys.path."""

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        return PathFinder.find_spec(name, [os.path.dirname(_PACKAGE)]) if name == "flarena" else None


class HookFinder:
    """A finder for sys.meta_path that finds the modules of HOOKS through the other finders.

    It sees each import. For a name that is not in HOOKS it costs one dictionary lookup.
    """

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        if name not in HOOKS:
            return None
        try:
            from ._importer import find_hooked
        except Exception as error:
            _warn_once(error)
            return None  # the other finders import the module without its hook
        return find_hooked(self, HOOKS[name], name, path, target)
