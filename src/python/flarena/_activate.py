"""The one entry that turns the hooks on, for both deliveries: the `sitecustomize.py` of hooks/ that a
launcher puts in PYTHONPATH, and the `.pth` (Python 3.15 and later: `.start`) file of the wheel.

It runs at the start of every Python process that inherits the preload, so it imports next to nothing,
asks the environment first, and leaves the rest until the program imports NVFlare, if it ever does.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_TRUE = ("1", "true", "yes", "on")
_active = False
_complained = False


def activate() -> None:
    """Install the NVFlare hooks if this process asked for markers or jemalloc. Idempotent; never raises."""
    global _active
    try:
        if not _active and (markers_wanted(os.environ) or jemalloc_wanted(os.environ)):
            from ._importer import install

            install()
            _active = True
    except Exception as error:
        complain("the hooks", error)


def markers_wanted(environ: Mapping[str, str]) -> bool:
    return _is_true(environ.get("NVFLARE_CLIENT_MEMORY_PROFILE"))


def jemalloc_wanted(environ: Mapping[str, str]) -> bool:
    allocator = environ.get("FLARENA_ALLOCATOR", "").strip().lower()
    if allocator in ("jemalloc", "glibc"):  # any other name the library reports and passes over
        return allocator == "jemalloc"
    return _is_true(environ.get("NVFLARE_ENABLE_JEMALLOC_PRELOAD"))


def _is_true(value: str | None) -> bool:
    return value is not None and value.strip().lower() in _TRUE


def complain(what: str, error: BaseException) -> None:
    """Say once in this process that a hook failed. Only the error's type: its text may hold a token."""
    global _complained
    if _complained or os.environ.get("FLARENA_LOG", "").strip().lower() == "off":
        return
    _complained = True
    line = f"flarena: {what} failed ({type(error).__name__}); the program goes on, some markers may be missing\n"
    try:
        os.write(2, line.encode("ascii", "replace"))
    except OSError:
        pass
