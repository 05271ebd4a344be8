"""The public functions of the package.

None but `holders` imports a module when it is called: an import fails in a signal handler that interrupts the same
import, and in a finalizer at the end of Python. After fork it waits for ever if a thread of the parent was importing.
"""

from __future__ import annotations

import gc
import json
import os

from ._cleanup import empty_cuda_cache
from ._settings import report_bad_argument

try:
    import ctypes

    from ._collector import safe_point, watch
    from ._native import shim as find_shim
except ImportError:  # a Python built without ctypes
    _HAS_CTYPES = False
else:
    _HAS_CTYPES = True

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._native import Shim
    from ._stats import Stats


def _shim() -> Shim | None:
    return find_shim() if _HAS_CTYPES else None


def _safe_point(waits: bool = False) -> None:
    if _HAS_CTYPES:
        safe_point(waits)


def loaded() -> bool:
    """True if this process runs on a preloaded libflarena.so."""
    return _shim() is not None


def version() -> str | None:
    """The version of the preloaded libflarena.so, or None without it. Calls `flarena_version()`."""
    shim = _shim()
    return shim.version() if shim else None


def allocator() -> str:
    """The allocator that serves malloc: "jemalloc", "glibc" or "unknown".

    Calls `flarena_allocator()`. Without the preload it does the same test as `get_allocator_type()`.
    """
    shim = _shim()
    return shim.allocator() if shim else get_allocator_type()


def trim() -> int | None:
    """Return free memory to the system now: cached blocks, and jemalloc's arenas or glibc's heap.

    Runs a garbage collection first if one is due (FLARENA_GC): that needs no growth, because a program trims before it
    waits. Releasing takes 100 to 350 ms per GB. Other Python threads keep running meanwhile.

    Returns 1 if memory was released, 0 if there was nothing to release, and None if the allocator of this
    process has no such function. Calls `flarena_trim()`. Without the preload it calls `malloc_trim(0)` if
    glibc serves malloc.
    """
    shim = _shim()
    _safe_point(waits=True)
    if shim is None:
        return _glibc_trim() if get_allocator_type() == "glibc" else None
    released = shim.trim()
    return None if released < 0 else released


def mark(stage: str, site: str | None = None, round: int | None = None) -> bool:
    """Emit one memory marker: `[RSS] TR s=site-1 r=3 validate: 512.3 MB`.

    stage  any text; 128 bytes of it are kept
    site   name of the federated site; None: unknown
    round  number of the round, 0 or more; None: unknown. A float may be given if it is whole.

    Runs a garbage collection first if one is due (FLARENA_GC), whether markers are on or off.

    Returns True if the marker was written: to FLARENA_MARKER_FILE if that is set, else to stderr. Returns
    False if writing failed, without the preload, and while markers are off. They are off, and cost nothing,
    unless NVFLARE_CLIENT_MEMORY_PROFILE is true. Never raises: an argument of a wrong type returns False, and
    the first one writes a line to stderr. Calls `flarena_mark()`.
    """
    shim = _shim()
    _safe_point()
    number = _whole_number(round)
    wrong: tuple[str, str, object] | None = None
    if not issubclass(type(stage), str):
        wrong = "stage", "a text", stage
    elif site is not None and not issubclass(type(site), str):
        wrong = "site", "a text or None", site
    elif round is not None and number is None:
        wrong = "round", "a whole number or None", round
    if wrong is not None:
        report_bad_argument(*wrong)
        return False
    return shim.mark(stage, site, number) if shim else False


def _whole_number(value: Any) -> int | None:
    try:
        if issubclass(type(value), float):
            return int(value) if float.is_integer(value) else None
        return int(value.__index__())
    except Exception:  # not a number, or an error of the program's own number type
        return None


def stats() -> Stats:
    """The memory of the process and of its allocator. Sizes are in bytes; an unknown value is None.

    `flarena._stats.Stats` describes each key. Calls `flarena_stats_json()`. Without the preload it has the sizes
    of /proc/self/status only (RSS and its parts, swap, peak RSS), with `version` None and `owner` False. Without
    /proc those sizes are None.
    """
    shim = _shim()
    readings: Any = {}
    if shim is not None:
        shim.note_pools()
        readings = json.loads(shim.stats_json())
    if not readings:
        readings = {
            "version": None,
            "pid": os.getpid(),
            "allocator": allocator(),
            "owner": False,
            **_proc_status(),
        }
    typed: Stats = readings
    return typed


# The metric of each size in `stats()`.
_METRICS = {
    "rss_bytes": "rss_mb",
    "hwm_bytes": "peak_rss_mb",
    "swap_bytes": "swap_mb",
    "live_bytes": "live_mb",
    "recycled_bytes": "cached_mb",
    "retained_bytes": "retained_mb",
    "pymalloc_bytes": "pymalloc_mb",
}


def metrics(prefix: str = "memory/") -> dict[str, float]:
    """The sizes of `stats()` as flat numbers for an experiment tracker, in MB of 1024 * 1024 bytes.

        mlflow.log_metrics(flarena.metrics(), step=n)
        wandb.log(flarena.metrics(), step=n)
        for name, value in flarena.metrics().items():
            writer.add_scalar(name, value, n)  # TensorBoard

    prefix  text before each name

    Names: rss_mb, peak_rss_mb, swap_mb; with the library also live_mb, cached_mb, retained_mb, pymalloc_mb.
    An unknown size is left out.
    """
    readings = stats()
    sizes = {name: readings.get(key) for key, name in _METRICS.items()}
    return {prefix + name: size / (1 << 20) for name, size in sizes.items() if isinstance(size, int)}


def rss_and_peak() -> tuple[int | None, int | None]:
    """RSS and the highest RSS of this process in bytes, each None if it is unknown."""
    sizes = _proc_status()
    return sizes["rss_bytes"], sizes["hwm_bytes"]


def holders(site: int | None = None, seconds: float = 1.0) -> list[str]:
    """The references that hold the largest arrays, tensors and bytes of an allocation site, a line per object.

    site     its number in `flarena who` and `flarena report`; None: the site that holds most
    seconds  CPU time that the search may take

    Examples: "module job: CACHE -> ndarray", "run.py:12 in main: model -> ndarray". Only a garbage collection
    frees the object of "cycle: Task.client_tasks -> ClientTask.task -> Task". If the time did not suffice for an
    object, its line is "ndarray: not found in time". A line contains names, never
    values. Returns an empty list unless FLARENA_SITES is on. Uses the interpreter's lists of referrers, and
    keeps no object alive.
    """
    if _shim() is None:
        return []
    from ._holders import find, largest_site

    number = largest_site() if site is None else site
    return [chain["text"] for chain in find(number, seconds)["chains"]] if number else []


def get_allocator_type() -> str:
    """NVFlare's test for the allocator, under NVFlare's name: "jemalloc", "glibc" or "unknown".

    Looks for the symbol `mallctl` (jemalloc), then for `malloc_trim` (glibc), as NVFlare does.
    """
    if not _HAS_CTYPES:
        return "unknown"
    try:
        process = ctypes.CDLL(None)
    except (OSError, TypeError):
        return "unknown"
    if hasattr(process, "mallctl"):
        return "jemalloc"
    return "glibc" if hasattr(process, "malloc_trim") else "unknown"


def try_malloc_trim() -> int | None:
    """`trim()` under NVFlare's name. Returns 1 (released), 0 (nothing to release) or None (not available)."""
    return trim()


def cleanup_memory(cuda_empty_cache: bool = False) -> None:
    """NVFlare's cleanup at the end of a round: a full garbage collection, then `trim()`.

    cuda_empty_cache  also empty PyTorch's CUDA cache, if the program uses PyTorch with CUDA

    NVFlare's own function waits for jemalloc's decay. This one purges jemalloc, too.
    """
    if _shim() is not None:
        watch()  # so that the collection below is counted
    gc.collect()
    trim()
    if cuda_empty_cache:
        empty_cuda_cache()


def _glibc_trim() -> int | None:
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
    rss, highest = sizes["rss_bytes"], sizes["hwm_bytes"]
    if rss is not None and highest is not None:
        sizes["hwm_bytes"] = max(rss, highest)  # the kernel counts it late
    return sizes
