"""The one entry that turns the hooks on, for both deliveries: the `sitecustomize.py` of hooks/ that a
launcher puts in PYTHONPATH, and the `.pth` (Python 3.15 and later: `.start`) file of the wheel.

It runs at the start of every Python process that inherits the preload, so it imports next to nothing,
asks the environment first, and leaves the rest until the program imports NVFlare, if it ever does.
"""

from __future__ import annotations

import os

from ._log import jemalloc_wanted, markers_wanted, note, sites_wanted

_active = False


def activate() -> None:
    """Install the NVFlare hooks if this process asked for markers or jemalloc. Idempotent; never raises."""
    global _active
    try:
        if sites_wanted(os.environ):
            from ._sites import start

            start()
        if not _active and any(wanted(os.environ) for wanted in (markers_wanted, jemalloc_wanted, sites_wanted)):
            from ._importer import install

            install()
            _active = True
    except Exception as error:
        note("the hooks", error)
