"""Markers and statistics have the sizes of PyTorch's CUDA cache once CUDA runs, and asking starts nothing."""

import json
import os
import sys

import flarena
import torch

MB = 1 << 20


def sizes():
    stats = flarena.stats()
    return stats["gpu_allocated_bytes"], stats["gpu_reserved_bytes"]


def of_pytorch():
    devices = range(torch.cuda.device_count())
    return sum(map(torch.cuda.memory_allocated, devices)), sum(map(torch.cuda.memory_reserved, devices))


def contexts():
    return [torch._C._cuda_hasPrimaryContext(device) for device in range(torch.cuda.device_count())]


flarena.mark("before")
assert sizes() == (None, None) and not torch.cuda.is_initialized()
with open("/proc/self/maps") as maps:
    assert "/dev/nvidia" not in maps.read(), "asking has started the driver"
tensor = torch.ones(64 * MB, dtype=torch.uint8, device="cuda")
used = contexts()
flarena.mark("held")
held = sizes()
assert held == of_pytorch() and held[0] >= 64 * MB and held[1] >= held[0], (held, of_pytorch())
assert contexts() == used, "asking has created a context on another GPU"
child = os.fork()
if child == 0:
    os._exit(sizes() != (None, None))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0  # the memory is the parent's
del tensor
flarena.mark("cached")
cached = sizes()
assert cached == of_pytorch() and cached[0] < MB and cached[1] == held[1], (held, cached)
torch.cuda.empty_cache()
flarena.mark("emptied")
emptied = sizes()
assert emptied == of_pytorch() and emptied[1] < MB, emptied
with open(sys.argv[1]) as file:
    markers = {marker["stage"]: marker for marker in map(json.loads, file)}
for stage, expected in (("before", (None, None)), ("held", held), ("cached", cached), ("emptied", emptied)):
    marker = markers[stage]
    assert (marker["gpu_allocated_bytes"], marker["gpu_reserved_bytes"]) == expected, (stage, marker)
