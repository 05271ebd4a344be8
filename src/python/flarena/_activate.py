"""Turns the hooks on when Python starts.

Two files call `activate`: the `sitecustomize.py` in hooks/, which a launcher puts on PYTHONPATH, and the
`.pth` file of the wheel (`.start` in Python 3.15 and later).

It runs in every Python process that inherits the preload, and often without compiled files. So this file is short,
imports no module that Python has not loaded, and reads the environment first. The hooks themselves are loaded when
the program imports NVFlare, Flower or OpenFL. This package never imports these itself.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

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


def activate() -> None:
    """Install the hooks if they have work in this process. Idempotent. Never raises."""
    try:
        environ = os.environ
        # The usual case needs no other module: a preload, with collections on because that is the default.
        is_usual = "libflarena" in environ.get("LD_PRELOAD", "") and not (
            environ.get("FLARENA_GC") or environ.get("FLARENA_SITES")
        )
        if not is_usual and not _are_hooks_wanted():
            return
        if any(type(finder) is HookFinder for finder in sys.meta_path):
            return
        sys.meta_path.insert(0, HookFinder())
        for name in HOOKS:
            if name in sys.modules:
                from ._importer import run_hook

                run_hook(sys.modules[name], *HOOKS[name])
    except Exception as error:
        from ._settings import warn_once

        warn_once("the hooks", error)


def _are_hooks_wanted() -> bool:
    from ._settings import (
        collections_wanted,
        gc_rounds,
        is_preloaded,
        jemalloc_wanted,
        markers_wanted,
        sites_wanted,
    )

    environ = os.environ
    if sites_wanted(environ):
        from ._sites import start

        start()
        return True
    if markers_wanted(environ) or jemalloc_wanted(environ):
        return True
    # Collections are on by default, and the wheel's .pth file runs in every Python of its environment.
    # Without the preload the hooks would do nothing.
    return (collections_wanted(environ) or gc_rounds(environ) > 0) and is_preloaded(environ)


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
        except Exception:  # the package was deleted: the other finders import the module without its hook
            return None
        return find_hooked(self, HOOKS[name], name, path, target)
