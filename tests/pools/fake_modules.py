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
assert released() == [] and _native.held_by_pools() == (None, None)
assert set(sys.modules) == imported, set(sys.modules) - imported

stats = {"allocated_bytes": {"current": 5}, "reserved_bytes": {"current": 7}}
torch = fake_module("torch._C", _host_emptyCache=None, _cuda_hostMemoryStats=stats, _cuda_isInBadFork=False)
cuda = fake_module("torch.cuda", is_initialized=False, empty_cache=None)
assert released() == [] and _native.held_by_pools() == (None, None)

cuda.is_initialized = lambda: True
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
