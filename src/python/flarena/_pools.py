"""The pools that Arrow and PyTorch keep beside malloc: what they hold, and how to make them give back what is free.

The library runs this very text, too, when it asks for that by itself (src/shim/governor), so it uses no other module of
the package. A library that the program has not imported has no pool; nothing is imported here.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def release(everything: bool) -> None:
    """What is free goes back to the system; with `everything` also a GPU's cache, to the GPU. Never raises."""
    for give_back in (_release_arrow, _release_pinned, *((_release_device,) if everything else ())):
        try:
            give_back()
        except Exception:  # a library in the middle of its import, or a broken driver: not our business
            pass


def held() -> tuple[int | None, int | None]:
    """Bytes in use in Arrow's pool, and bytes that PyTorch has pinned; None where there is no such pool."""
    return _or_none(_arrow_bytes), _or_none(_pinned_bytes)


def _or_none(bytes_of: Any) -> int | None:
    try:
        size: int | None = bytes_of()
    except Exception:
        return None
    return size


def _arrow_pool() -> Any:
    """Arrow's pool, or None where its buffers come from malloc."""
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
    """The module of the kind of GPU that the program uses; None where it has touched none."""
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
    # Older versions count only requests under the first name, and what is owned under the second.
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


def _release_device() -> None:
    module = _accelerator()
    if module is not None:
        module.empty_cache()
