"""The public functions. Imports are kept inside them: `import flarena` must cost a program nothing."""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._native import Shim


def _shim() -> Shim | None:
    try:
        from ._native import shim
    except ImportError:  # a Python built without ctypes
        return None
    return shim()


def _safe_point() -> None:
    try:
        from ._collector import safe_point
    except ImportError:  # a Python built without ctypes
        return
    safe_point()


def loaded() -> bool:
    """True when this process runs on a preloaded libflarena.so."""
    return _shim() is not None


def version() -> str | None:
    """Version of the preloaded libflarena.so, or None without it. Source: `flarena_version()`."""
    shim = _shim()
    return shim.version() if shim else None


def allocator() -> str:
    """The allocator that serves malloc: "jemalloc", "glibc" or "unknown".

    Source: `flarena_allocator()`; without the preload the same test as `get_allocator_type()`.
    """
    shim = _shim()
    return shim.allocator() if shim else get_allocator_type()


def trim() -> int | None:
    """Give free memory back to the system now: recycled pages, jemalloc's arenas or glibc's heap.

    Garbage that may hold much is collected first (FLARENA_GC). Returns 1 when memory was released, 0
    when there was nothing to release, None when no allocator here can be asked to. It may
    take 100-350 ms per GB that goes back; other Python threads run on.

    Source: `flarena_trim()`; without the preload glibc's `malloc_trim(0)`, if glibc serves malloc.
    """
    shim = _shim()
    _safe_point()
    if shim is None:
        return _glibc_trim() if get_allocator_type() == "glibc" else None
    released = shim.trim()
    return None if released < 0 else released


def mark(stage: str, site: str | None = None, round: int | None = None) -> bool:
    """Emit one memory marker: `[RSS] TR s=site-1 r=3 validate: 512.3 MB`.

    stage  any text; 128 bytes of it are kept
    site   name of the federated site; None: not known
    round  number of the round, 0 or more; None: not known

    Returns True when the marker was written: to FLARENA_MARKER_FILE where that is set, else to stderr.
    False when it could not be, without the preload, and where markers are off, as they are, at no cost,
    unless NVFLARE_CLIENT_MEMORY_PROFILE is true.
    Garbage that may hold much is collected first (FLARENA_GC), whether markers are on or off.
    Raises TypeError for arguments of a wrong type. Source: `flarena_mark()`.
    """
    shim = _shim()
    _safe_point()
    return shim.mark(stage, site, round) if shim else False


def stats() -> dict[str, Any]:
    """What the process and its allocator hold right now, sizes in bytes, unknown values None.

    Source: `flarena_stats_json()`. Without the preload only what Linux itself knows (RSS, its split,
    swap, HWM) with `version` None and `owner` False; an empty reading where there is no /proc.
    """
    shim = _shim()
    readings: dict[str, Any] = {}
    if shim is not None:
        import json

        readings = json.loads(shim.stats_json())
    return readings or {
        "version": None,
        "pid": os.getpid(),
        "allocator": allocator(),
        "owner": False,
        **_proc_status(),
    }


def holders(site: int | None = None, seconds: float = 1.0) -> list[str]:
    """Who refers to the largest arrays, tensors and bytes of an allocation site, one line for each object.

    site     its number in `flarena who` and `flarena report`; None: the site that holds most
    seconds  when to stop looking

    "module job: CACHE -> ndarray", "run.py:12 in main: model -> ndarray", or, where only garbage collection
    helps, "cycle: Task.client_tasks -> ClientTask.task -> Task". Names, never values. Keeps nothing alive.
    Empty unless FLARENA_SITES is on. Source: the interpreter's own lists of referrers.
    """
    if _shim() is None:
        return []
    from ._holders import find, largest_site

    number = largest_site() if site is None else site
    return [chain["text"] for chain in find(number, seconds)["chains"]] if number else []


def get_allocator_type() -> str:
    """NVFlare's question under NVFlare's name: "jemalloc", "glibc" or "unknown".

    Asks the process for `mallctl` (jemalloc), then `malloc_trim` (glibc), as NVFlare does.
    """
    import ctypes

    try:
        process = ctypes.CDLL(None)
    except (OSError, TypeError):
        return "unknown"
    if hasattr(process, "mallctl"):
        return "jemalloc"
    return "glibc" if hasattr(process, "malloc_trim") else "unknown"


def try_malloc_trim() -> int | None:
    """`trim()` under NVFlare's name: 1 released, 0 nothing to release, None not available."""
    return trim()


def cleanup_memory(cuda_empty_cache: bool = False) -> None:
    """NVFlare's end-of-round cleanup, for both allocators: collect garbage, then `trim()`.

    cuda_empty_cache  also empty PyTorch's CUDA cache, when the program uses PyTorch with CUDA

    Unlike NVFlare's own it purges jemalloc too, instead of waiting for its decay.
    """
    if _shim() is not None:
        from ._collector import watch

        watch()  # what it releases is told
    gc.collect()
    trim()
    torch = sys.modules.get("torch")  # a program that has not imported it has no cache to empty
    if cuda_empty_cache and torch is not None:
        try:
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
        except Exception:  # a broken driver must not end the round
            pass


def _glibc_trim() -> int | None:
    import ctypes

    try:
        malloc_trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    malloc_trim.argtypes = [ctypes.c_size_t]
    malloc_trim.restype = ctypes.c_int
    return int(malloc_trim(0))


_STATUS_FIELDS = {
    "VmRSS": "rss_bytes",
    "RssAnon": "anon_bytes",
    "RssFile": "file_bytes",
    "VmSwap": "swap_bytes",
    "VmHWM": "hwm_bytes",
}


def _proc_status() -> dict[str, int | None]:
    sizes: dict[str, int | None] = dict.fromkeys(_STATUS_FIELDS.values())
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            for line in status:
                key, _, value = line.partition(":")
                if key in _STATUS_FIELDS:
                    sizes[_STATUS_FIELDS[key]] = int(value.split()[0]) * 1024
    except (OSError, ValueError):
        pass
    return sizes
