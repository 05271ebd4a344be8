"""Tests which functions of PyTorch and Arrow are called, with fake modules, because there may be no GPU.

No function is called of a library that the program has not imported, and none that would use a GPU.
"""

import sys
import types

from flarena import _native, _pools

calls = []


def fake_module(name, **functions):
    module = types.ModuleType(name)
    for function, result in functions.items():
        setattr(module, function, lambda function=function, result=result: calls.append(function) or result)
    sys.modules[name] = module
    return module


def released():
    calls.clear()
    _native.release_pools()
    questions = ("is_initialized", "_cuda_isInBadFork", "_cuda_hostMemoryStats")
    return [call for call in calls if call not in questions]


imported = set(sys.modules)
assert released() == [] and _native.held_by_pools() == _native.held_on_gpus() == (None, None)
assert set(sys.modules) == imported, set(sys.modules) - imported

stats = {"allocated_bytes": {"current": 5}, "reserved_bytes": {"current": 7}}
torch = fake_module("torch._C", _host_emptyCache=None, _cuda_hostMemoryStats=stats, _cuda_isInBadFork=False)
cuda = fake_module("torch.cuda", is_initialized=False, empty_cache=None)
assert released() == [] and _native.held_by_pools() == (None, None)


def gpu(device):
    assert device in (0, 2), "a GPU without a context is asked"
    calls.append(device)
    sizes = {"all": {"current": 1 << device, "peak": 99}, "small_pool": {"current": 1}}
    return {"allocated_bytes": sizes, "reserved_bytes": {"all": {"current": 10}}}


torch._cuda_getDeviceCount = lambda: calls.append("count") or 3
torch._cuda_hasPrimaryContext = lambda device: device != 1
torch._cuda_memoryStats = gpu
calls.clear()
assert _native.held_on_gpus() == (None, None)
assert calls == ["is_initialized"], calls  # CUDA is not started: nothing else is asked
cuda.is_initialized = lambda: True
assert _native.held_on_gpus() == (1 + 4, 20)
assert calls == ["is_initialized", "count", 0, 2], calls
torch._cuda_memoryStats = lambda device: {}  # a version with other names
assert _native.held_on_gpus() == (None, None)
del torch._cuda_hasPrimaryContext
assert _native.held_on_gpus() == (None, None)

assert released() == ["_host_emptyCache"], calls  # empty_cache is not called: the GPU's cache stays
assert _native.held_by_pools() == (None, 7)
cuda.is_initialized = lambda: False
_pools._maps_driver = lambda: True  # as after pinning alone
assert released() == ["_host_emptyCache"] and _native.held_by_pools() == (None, 7)
torch._cuda_isInBadFork = lambda: True  # in the child of a parent that uses the GPU
assert released() == [] and _native.held_by_pools() == (None, None)

cuda.is_initialized = lambda: True
fake_module("torch.accelerator", empty_host_cache=None)
assert released() == ["empty_host_cache"], calls


def broken():
    raise RuntimeError


sys.modules["torch.accelerator"].empty_host_cache = torch._cuda_hostMemoryStats = broken
assert released() == [] and _native.held_by_pools() == (None, None)


class Pool:
    backend_name = "mimalloc"

    def release_unused(self):
        calls.append("release_unused")

    def bytes_allocated(self):
        return 5


arrow = fake_module("pyarrow", default_memory_pool=Pool())
assert "release_unused" in released()
assert _native.held_by_pools() == (5, None)
Pool.backend_name = "system"  # a pool that uses malloc
assert "release_unused" not in released()
assert _native.held_by_pools() == (None, None)
del arrow.default_memory_pool  # as in the middle of its import
assert "release_unused" not in released()
