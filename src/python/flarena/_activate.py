"""The one entry that turns the hooks on, for both deliveries: the `sitecustomize.py` of hooks/ that a
launcher puts in PYTHONPATH, and the `.pth` (Python 3.15 and later: `.start`) file of the wheel.

It runs at the start of every Python process that inherits the preload, so it imports next to nothing,
asks the environment first, and leaves the rest until the program imports NVFlare, if it ever does.
"""

from __future__ import annotations

import os

from ._log import collections_wanted, jemalloc_wanted, markers_wanted, note, preloaded, sites_wanted

_active = False


def activate() -> None:
    """Install the NVFlare hooks if they have something to do in this process. Idempotent; never raises."""
    global _active
    try:
        if sites_wanted(os.environ):
            from ._sites import start

            start()
        if not _active and _is_wanted():
            from ._importer import install

            install()
            _active = True
    except Exception as error:
        note("the hooks", error)


def _is_wanted() -> bool:
    environ = os.environ
    if markers_wanted(environ) or jemalloc_wanted(environ) or sites_wanted(environ):
        return True
    # On by default, so only where the library is: a wheel's hooks are found by every Python of its environment.
    return collections_wanted(environ) and preloaded(environ)
