"""pinned.py counted|released|leak|wait: memory that PyTorch pins for the GPU."""

import os
import sys

import flarena
import torch
from flarena import _pools

MB = 1 << 20


def pin(megabytes):
    return torch.ones(megabytes * MB, dtype=torch.uint8).pin_memory()


def shared_mb():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) >> 10 for line in status if line.startswith("RssShmem"))


def counted():
    """Counting does not start the driver, so that a forked child may still use the GPU."""
    assert _pools.pinned_bytes() is None
    with open("/proc/self/maps") as maps:
        assert "/dev/nvidia" not in maps.read(), "counting has started the driver"
    child = os.fork()
    if child == 0:
        os._exit(int(torch.ones(3).cuda().sum()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    kept = pin(256)
    assert not torch.cuda.is_initialized()  # pinning alone does not count as a use
    assert _pools.pinned_bytes() == 256 * MB, _pools.pinned_bytes()
    stats = flarena.stats()
    assert stats["pinned_bytes"] == kept.numel(), stats
    child = os.fork()
    if child == 0:
        os._exit(_pools.pinned_bytes() is not None or _pools._uses_gpu())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0  # the memory is the parent's
    print("counted")


def released():
    kept, free = pin(256), pin(256)
    assert shared_mb() >= 512, shared_mb()
    del free
    flarena.trim()
    assert 256 <= shared_mb() < 300, shared_mb()
    assert int(kept.sum()) == 256 * MB
    print("released")


def leak():
    kept = []
    for number in range(24):
        kept.append(pin(32))
        flarena.mark("trained", round=number)


def wait():
    kept = pin(512)
    flarena.mark("pinned", round=0)
    print(os.getpid(), flush=True)
    sys.stdin.readline()
    del kept


{"counted": counted, "released": released, "leak": leak, "wait": wait}[sys.argv[1]]()
