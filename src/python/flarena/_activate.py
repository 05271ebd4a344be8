"""Turns the hooks on when Python starts.

Two files call `activate`: the `sitecustomize.py` in hooks/, which a launcher puts on PYTHONPATH, and the
`.pth` file of the wheel (`.start` in Python 3.15 and later).

It runs in every Python process that inherits the preload. So it imports almost nothing and reads the
environment first. The hooks themselves are loaded when the program imports NVFlare, Flower or OpenFL.
"""

from __future__ import annotations

import os

from ._settings import (
    collections_wanted,
    gc_rounds,
    is_preloaded,
    jemalloc_wanted,
    markers_wanted,
    sites_wanted,
    warn_once,
)

_active = False


def activate() -> None:
    """Install the hooks if they have work in this process. Idempotent. Never raises."""
    global _active
    try:
        if sites_wanted(os.environ):
            from ._sites import start

            start()
        if not _active and _are_hooks_wanted():
            from ._importer import install

            install()
            _active = True
    except Exception as error:
        warn_once("the hooks", error)


def _are_hooks_wanted() -> bool:
    environ = os.environ
    if markers_wanted(environ) or jemalloc_wanted(environ) or sites_wanted(environ):
        return True
    # Collections are on by default, and the wheel's .pth file runs in every Python of its environment.
    # Without the preload the hooks would do nothing.
    return (collections_wanted(environ) or gc_rounds(environ) > 0) and is_preloaded(environ)
