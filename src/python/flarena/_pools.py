"""The memory pools of Arrow and PyTorch beside malloc: their size, and the release of their free memory.

The library also runs this file as text, after `_safety.py`, when the program is idle or near its limit
(src/shim/governor). So it imports no other module of the package. It never imports Arrow or PyTorch, also not one that
waits in `importlib.util.LazyLoader`: if the program has not imported them, they have no pool. Callers contain errors:
the library may be in the middle of its import, or its driver has failed.
"""

import _io
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_namespace_of_module: "Any" = vars(type(sys))["__dict__"].__get__


def _attribute(module: str, name: str) -> "Any":
    """An attribute of a module that the program has imported, or None. Loads no lazy module."""
    found = sys.modules.get(module)
    is_module = any(one is type(sys) for one in type.mro(type(found)))
    return _namespace_of_module(found).get(name) if is_module else None


def _arrow_pool() -> "Any":
    """Arrow's pool, or None if its buffers come from malloc."""
    default_pool = _attribute("pyarrow", "default_memory_pool")
    pool = None if default_pool is None else default_pool()
    return None if pool is None or pool.backend_name == "system" else pool


def arrow_bytes() -> "int | None":
    """Bytes in use in Arrow's pool. None if there is no such pool."""
    pool = _arrow_pool()
    return None if pool is None else int(pool.bytes_allocated())


def _release_arrow() -> None:
    pool = _arrow_pool()
    if pool is not None:
        pool.release_unused()


def _maps_driver() -> bool:
    """True if this process itself has started NVIDIA's driver: a forked child does not inherit this mapping."""
    with _io.open("/proc/self/maps", "rb") as maps:
        return b"/dev/nvidia-uvm" in maps.read()


def _uses_gpu() -> bool:
    """True if PyTorch in this process, and not in the parent of a fork, may have pinned memory."""
    checks = [_attribute(name, "is_initialized") for name in ("torch.cuda", "torch.xpu")]
    if any(check() for check in checks if check is not None):
        return True
    # Pinning alone does not count as an initialization, but starts the driver.
    is_forked = _attribute("torch._C", "_cuda_isInBadFork")
    return is_forked is not None and not is_forked() and _maps_driver()


def pinned_bytes() -> "int | None":
    """Bytes that PyTorch has pinned, in use or cached. None if this process has no such pool. Starts no driver."""
    # torch.cuda.host_memory_stats says nothing after pinning alone.
    read = _attribute("torch._C", "_cuda_hostMemoryStats")
    if read is None or not _uses_gpu():
        return None
    stats = read()
    # Older versions count the pinned bytes under the second name, and only those in use under the first.
    return max(int(stats.get(f"{name}_bytes", {}).get("current", 0)) for name in ("allocated", "reserved"))


def gpu_bytes() -> "tuple[int, int] | None":
    """Bytes of PyTorch's tensors on all GPUs, and of the cache that has them. None unless PyTorch has started CUDA."""
    is_initialized = _attribute("torch.cuda", "is_initialized")
    count, has_context, read = (
        _attribute("torch._C", f"_cuda_{name}") for name in ("getDeviceCount", "hasPrimaryContext", "memoryStats")
    )
    if any(function is None for function in (is_initialized, count, has_context, read)) or not is_initialized():
        return None
    # A GPU that the process has not used holds nothing, and is not asked.
    stats = [read(device) for device in range(count()) if has_context(device)]
    allocated, reserved = (
        sum(int(one[f"{name}_bytes"]["all"]["current"]) for one in stats) for name in ("allocated", "reserved")
    )
    return allocated, reserved


def _release_pinned() -> None:
    if not _uses_gpu():
        return
    places = ("torch.accelerator", "torch.accelerator.memory", "torch._C")
    for place, name in zip(places, ("empty_host_cache", "empty_host_cache", "_host_emptyCache")):
        empty = _attribute(place, name)
        if empty is not None:
            empty()
            return


# Each returns the free memory of a pool to the system. A GPU's cache stays.
RELEASES = (_release_arrow, _release_pinned)
