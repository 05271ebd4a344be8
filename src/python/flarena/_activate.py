"""The one entry that turns the hooks on, for both deliveries: the `sitecustomize.py` of hooks/ that a
launcher puts in PYTHONPATH, and the `.pth` (Python 3.15 and later: `.start`) file of the wheel.

It runs at the start of every Python process that inherits the preload, so it imports next to nothing,
asks the environment first, and leaves the rest until the program imports NVFlare, if it ever does.
"""

from __future__ import annotations

import os

from ._log import jemalloc_wanted, markers_wanted, note

_active = False


def activate() -> None:
    """Install the NVFlare hooks if this process asked for markers or jemalloc. Idempotent; never raises."""
    global _active
    try:
        if not _active and (markers_wanted(os.environ) or jemalloc_wanted(os.environ)):
            from ._importer import install

            install()
            _active = True
    except Exception as error:
        note("the hooks", error)
