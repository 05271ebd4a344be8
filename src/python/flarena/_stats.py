"""The keys of `flarena.stats()`, for type checkers. A test compares them with those of the library.

The annotations stay texts at run time, so that Python 3.9 can import this module.
"""

from __future__ import annotations

from typing import Any, TypedDict


class Stats(TypedDict, total=False):
    """Sizes are in bytes, and None where unknown. Without the library only the first nine keys exist."""

    version: str | None
    pid: int
    allocator: str  # "jemalloc", "glibc" or "unknown"
    owner: bool  # the library serves malloc in this process
    rss_bytes: int | None
    anon_bytes: int | None  # the anonymous part of RSS
    file_bytes: int | None  # the part of RSS that maps files
    swap_bytes: int | None
    hwm_bytes: int | None  # the highest RSS so far
    live_bytes: int | None  # blocks that the program holds
    recycled_bytes: int | None  # pages that the recycler keeps for the next large block
    retained_bytes: int | None  # free memory that the backend keeps
    pymalloc_bytes: int | None  # arenas of Python's small objects
    arrow_bytes: int | None  # Arrow's pool
    pinned_bytes: int | None  # PyTorch's pinned host memory
    gpu_allocated_bytes: int | None  # PyTorch's tensors on all GPUs
    gpu_reserved_bytes: int | None  # the cache of PyTorch's CUDA allocator, with the tensors
    cgroup_bytes: int | None  # memory of the control group with the nearest limit: the own one or a parent
    cgroup_limit_bytes: int | None  # the memory limit of that group
    marked_rss_bytes: list[int]  # RSS at the last markers, the newest last
    stages: list[dict[str, Any]]  # RSS at the last marker of each stage, and the highest one
    name: str | None  # FLARENA_NAME
    role: str | None
    proc: str  # the kind of NVFlare process, "-" for any other
    site: str | None  # site, round and stage of the last marker
    round: int | None
    stage: str | None
    backend: dict[str, Any]
    recycler: dict[str, Any]
    governor: dict[str, Any]
    garbage: dict[str, Any]
    settings: dict[str, str]  # the effective value of each setting
