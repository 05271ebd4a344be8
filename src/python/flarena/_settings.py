"""The settings that the hooks read from the environment, and the warnings of the package.

The hooks read these themselves because they also run where the library is not loaded. A test of
src/shared compares each parser here with the library's own.

This module imports no other module of the package, so that all of them can import it.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")
_written: set[str] = set()  # topics of which a line was written


def markers_wanted(environ: Mapping[str, str]) -> bool:
    return _is_true(environ.get("NVFLARE_CLIENT_MEMORY_PROFILE"))


def sites_wanted(environ: Mapping[str, str]) -> bool:
    return _is_true(environ.get("FLARENA_SITES"))


def jemalloc_wanted(environ: Mapping[str, str]) -> bool:
    allocator = environ.get("FLARENA_ALLOCATOR", "").strip().lower()
    if allocator in ("jemalloc", "glibc"):  # the library reports any other name and ignores it
        return allocator == "jemalloc"
    return _is_true(environ.get("NVFLARE_ENABLE_JEMALLOC_PRELOAD"))


def collections_wanted(environ: Mapping[str, str]) -> bool:
    return environ.get("FLARENA_GC", "").strip().lower() not in _FALSE


def gc_rounds(environ: Mapping[str, str], default: int = 0) -> int:
    """A client cleans its memory up after every so many results; 0: never. The default holds without the variable."""
    text = environ.get("NVFLARE_CLIENT_MEMORY_GC_ROUNDS", "").strip()
    if not text:
        return default
    rounds = int(text) if text.isascii() and text.isdigit() and len(text) < 100 else 0
    return rounds if rounds < 1 << 32 else 0


def cuda_cache_wanted(environ: Mapping[str, str]) -> bool:
    """True if that cleanup also empties PyTorch's CUDA cache."""
    return _is_true(environ.get("NVFLARE_CUDA_EMPTY_CACHE"))


def pools_wanted(environ: Mapping[str, str]) -> bool:
    """True if the memory pools beside malloc are to be kept small."""
    return environ.get("FLARENA_POOLS", "").strip().lower() not in _FALSE


def is_preloaded(environ: Mapping[str, str]) -> bool:
    """True if LD_PRELOAD names the library."""
    return "libflarena" in environ.get("LD_PRELOAD", "")


def is_silent(environ: Mapping[str, str]) -> bool:
    """True if the user wants no message on stderr."""
    return environ.get("FLARENA_LOG", "").strip().lower() == "off"


def _is_true(value: str | None) -> bool:
    return value is not None and value.strip().lower() in _TRUE


def warn_once(what: str, error: BaseException) -> None:
    """Write one line to stderr about the first failure in this process.

    The line names the type of the error only, because its text may contain a token.
    """
    reason = _type_name(error)
    _write_once("failure", f"{what} failed ({reason}); the program continues, some markers may be missing")


def report_bad_argument(name: str, expected: str, value: object) -> None:
    """Write one line to stderr about the first wrong argument of mark() in this process, without its value."""
    _write_once(
        "argument", f"mark(): the {name} must be {expected}, not {_type_name(value)}; the marker is not written"
    )


def _type_name(value: object) -> str:
    # A metaclass may define `__name__`.
    return str.__str__(type.__dict__["__name__"].__get__(type(value)))


def _write_once(topic: str, message: str) -> None:
    if topic in _written or is_silent(os.environ):
        return
    _written.add(topic)
    try:
        os.write(2, f"flarena: {message}\n".encode("ascii", "replace"))
    except OSError:
        pass
