"""What the hooks ask the environment, and the one line they write when something fails.

It uses no other module of the package, so that all of them can use it.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")
_noted = False


def markers_wanted(environ: Mapping[str, str]) -> bool:
    return _is_true(environ.get("NVFLARE_CLIENT_MEMORY_PROFILE"))


def sites_wanted(environ: Mapping[str, str]) -> bool:
    return _is_true(environ.get("FLARENA_SITES"))


def jemalloc_wanted(environ: Mapping[str, str]) -> bool:
    allocator = environ.get("FLARENA_ALLOCATOR", "").strip().lower()
    if allocator in ("jemalloc", "glibc"):  # any other name the library reports and passes over
        return allocator == "jemalloc"
    return _is_true(environ.get("NVFLARE_ENABLE_JEMALLOC_PRELOAD"))


def collections_wanted(environ: Mapping[str, str]) -> bool:
    return environ.get("FLARENA_GC", "").strip().lower() not in _FALSE


def pools_choice(environ: Mapping[str, str]) -> str:
    """What is done about pools beside malloc: "auto", "off" or "all"."""
    value = environ.get("FLARENA_POOLS", "").strip().lower()
    if value in _FALSE:
        return "off"
    return "all" if value == "all" else "auto"


def preloaded(environ: Mapping[str, str]) -> bool:
    """True where a launcher or an image has put the library before this process."""
    return "libflarena" in environ.get("LD_PRELOAD", "")


def quiet(environ: Mapping[str, str]) -> bool:
    """Nothing is to be written on stderr."""
    return environ.get("FLARENA_LOG", "").strip().lower() == "off"


def _is_true(value: str | None) -> bool:
    return value is not None and value.strip().lower() in _TRUE


def note(what: str, error: BaseException) -> None:
    """Say once in this process that a hook failed. Only the error's type: its text may hold a token."""
    global _noted
    if _noted or quiet(os.environ):
        return
    _noted = True
    line = f"flarena: {what} failed ({type(error).__name__}); the program goes on, some markers may be missing\n"
    try:
        os.write(2, line.encode("ascii", "replace"))
    except OSError:
        pass
