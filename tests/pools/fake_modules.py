"""Which functions of PyTorch and Arrow are called, and when: with stand-ins, as no GPU is here.

Nothing is called of a library that the program has not imported, or of a GPU that it has not touched.
"""

import sys
import types

from flarena import _pools

calls = []


def module(name, **functions):
    made = types.ModuleType(name)
    for function, answer in functions.items():
        setattr(made, function, lambda function=function, answer=answer: calls.append(function) or answer)
    sys.modules[name] = made
    return made


def released(everything):
    calls.clear()
    _pools.release(everything)
    return [call for call in calls if call != "is_initialized"]


imported = set(sys.modules)
assert released(True) == [] and _pools.held() == (None, None)
assert set(sys.modules) == imported, set(sys.modules) - imported

cuda = module("torch.cuda", is_initialized=False, empty_cache=None, host_memory_stats={"allocated_bytes.current": 7})
module("torch._C", _host_emptyCache=None)
assert released(True) == [] and _pools.held() == (None, None)

cuda.is_initialized = lambda: True
assert released(False) == ["_host_emptyCache"], calls
assert released(True) == ["_host_emptyCache", "empty_cache"], calls
assert _pools.held() == (None, 7)
module("torch.accelerator", empty_host_cache=None)
assert released(False) == ["empty_host_cache"], calls


def broken():
    raise RuntimeError


sys.modules["torch.accelerator"].empty_host_cache = cuda.host_memory_stats = broken
assert released(True) == ["empty_cache"] and _pools.held() == (None, None)


class Pool:
    backend_name = "mimalloc"

    def release_unused(self):
        calls.append("release_unused")

    def bytes_allocated(self):
        return 5


arrow = module("pyarrow", default_memory_pool=Pool())
assert "release_unused" in released(False)
assert _pools.held() == (5, None)
Pool.backend_name = "system"  # malloc's own trim is at hand
assert "release_unused" not in released(False)
assert _pools.held() == (None, None)
del arrow.default_memory_pool  # in the middle of its import
assert "release_unused" not in released(False)
