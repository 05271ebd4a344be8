"""Tests which functions of PyTorch and Arrow are called, with fake modules, because there may be no GPU.

No function is called of a library that the program has not imported, and none that would use a GPU.
"""

import sys
import types

from flarena import _native

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
    return [call for call in calls if call != "_cuda_hostMemoryStats"]


imported = set(sys.modules)
assert released() == [] and _native.held_by_pools() == (None, None)
assert set(sys.modules) == imported, set(sys.modules) - imported

torch = fake_module("torch._C", _host_emptyCache=None, _cuda_hostMemoryStats={"allocated_bytes": {"current": 0}})
assert released() == [] and _native.held_by_pools() == (None, 0)

cuda = fake_module("torch.cuda", is_initialized=True, empty_cache=None)
assert released() == ["is_initialized", "_host_emptyCache"], calls  # empty_cache is not called: the GPU's cache stays
del sys.modules["torch.cuda"]
torch._cuda_hostMemoryStats = lambda: {"allocated_bytes": {"current": 5}, "reserved_bytes": {"current": 7}}
assert released() == ["_host_emptyCache"], calls
assert _native.held_by_pools() == (None, 7)
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
