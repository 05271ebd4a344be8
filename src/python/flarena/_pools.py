"""The memory pools of Arrow and PyTorch beside malloc: their size, and the release of their free memory.

The library also runs this file as text when the program is idle or near its limit (src/shim/governor). So it
imports no other module of the package. It never imports Arrow or PyTorch: if the program has not imported
them, they have no pool.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def release() -> None:
    """Return the free memory of the pools to the system. A GPU's cache stays. Never raises."""
    for release_pool in (_release_arrow, _release_pinned):
        try:
            release_pool()
        except Exception:  # the library is in the middle of its import, or its driver has failed
            pass


def held() -> tuple[int | None, int | None]:
    """Bytes in use in Arrow's pool, and bytes that PyTorch has pinned. None if there is no such pool."""
    return _or_none(_arrow_bytes), _or_none(_pinned_bytes)


def _or_none(bytes_of: Any) -> int | None:
    try:
        size: int | None = bytes_of()
    except Exception:
        return None
    return size


def _arrow_pool() -> Any:
    """Arrow's pool, or None if its buffers come from malloc."""
    arrow = sys.modules.get("pyarrow")
    pool = None if arrow is None else arrow.default_memory_pool()
    return None if pool is None or pool.backend_name == "system" else pool


def _arrow_bytes() -> int | None:
    pool = _arrow_pool()
    return None if pool is None else int(pool.bytes_allocated())


def _release_arrow() -> None:
    pool = _arrow_pool()
    if pool is not None:
        pool.release_unused()


def _accelerator() -> Any:
    """The module of the GPU that the program uses, or None if it has initialized none."""
    for name in ("torch.cuda", "torch.xpu"):
        module = sys.modules.get(name)
        if module is not None and module.is_initialized():
            return module
    return None


def _pinned_bytes() -> int | None:
    module = _accelerator()
    if module is None or not hasattr(module, "host_memory_stats"):
        return None
    stats = module.host_memory_stats()
    # Older versions count the pinned bytes under the second name, and only those in use under the first.
    return max(int(stats.get(f"{name}_bytes.current", 0)) for name in ("allocated", "reserved"))


def _release_pinned() -> None:
    if _accelerator() is None:
        return
    places = (sys.modules.get(name) for name in ("torch.accelerator", "torch.accelerator.memory", "torch._C"))
    for place, name in zip(places, ("empty_host_cache", "empty_host_cache", "_host_emptyCache")):
        empty = getattr(place, name, None)
        if empty is not None:
            empty()
            return
