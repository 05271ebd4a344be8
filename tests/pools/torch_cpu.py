"""Without a GPU the package imports nothing of PyTorch and calls no function of it."""

import sys

import flarena
from flarena import _native, _pools

assert not any(name.startswith("torch") for name in sys.modules)
flarena.trim()
flarena.mark("before")
assert not any(name.startswith("torch") for name in sys.modules)


def work():
    import torch

    return float(torch.ones(1000).sum()), torch.cuda.is_initialized


total, is_initialized = work()
assert total == 1000
assert not _pools._uses_gpu() and _native.held_by_pools() == _native.held_on_gpus() == (None, None)
_native.release_pools()
flarena.trim()
assert not is_initialized()
