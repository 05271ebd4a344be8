"""copies.py SECONDS: threads copy blocks of malloc to the GPU and back while another one trims. A wrong byte fails.

The blocks are ordinary ones, which the driver copies through buffers of its own or pins for the time of the copy, and
ones that the thread registers with CUDA. The blocks are freed at once, so that their pages are recycled.
"""

import random
import sys
import threading
import time

import flarena
import numpy as np
import torch

THREADS = 12
KB = 1 << 10
CUDART = torch.cuda.cudart()
counts = [0] * THREADS
errors = []


def register(array):
    """True if the block is now pinned. The driver pins whole pages, so two small blocks may collide."""
    return CUDART.cudaHostRegister(array.ctypes.data, array.nbytes, 0) == CUDART.cudaError.success


def copy_once(numbers, seed):
    size = int(64 * KB * 2 ** numbers.uniform(0, 10))
    source = np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8)
    is_registered = numbers.random() < 0.4 and register(source)
    device = torch.from_numpy(source).to("cuda", non_blocking=True)
    if numbers.random() < 0.5 or is_registered:
        torch.cuda.current_stream().synchronize()
    expected = int(device.sum(dtype=torch.int64))
    assert expected == int(source.sum(dtype=np.int64)), f"{size} bytes differ on the GPU"
    if is_registered:
        assert CUDART.cudaHostUnregister(source.ctypes.data) == CUDART.cudaError.success
    kept = source.copy()
    del source  # the next block usually takes these pages
    target = np.empty(size, dtype=np.uint8)
    is_registered = numbers.random() < 0.4 and register(target)
    torch.from_numpy(target).copy_(device, non_blocking=True)
    torch.cuda.current_stream().synchronize()
    assert np.array_equal(target, kept), f"{size} bytes differ after the way back"
    if is_registered:
        assert CUDART.cudaHostUnregister(target.ctypes.data) == CUDART.cudaError.success


def work(index, end):
    numbers = random.Random(index)
    try:
        with torch.cuda.stream(torch.cuda.Stream()):
            while time.monotonic() < end and not errors:
                copy_once(numbers, index * 1_000_000 + counts[index])
                counts[index] += 1
    except BaseException as error:
        errors.append(f"thread {index}, copy {counts[index]}: {error!r}")


def main(seconds):
    torch.cuda.init()
    end = time.monotonic() + seconds
    threads = [threading.Thread(target=work, args=(index, end)) for index in range(THREADS)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        flarena.trim()
        time.sleep(0.05)
    assert not errors, errors
    assert min(counts) > 0, counts
    print("each byte is right")


main(float(sys.argv[1]))
