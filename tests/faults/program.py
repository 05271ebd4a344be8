"""A Python program, with NumPy where it is there, that must outlive refusals: MemoryError is an answer, wrong bytes are not.

No threads: Thread.start waits for ever when Python has no memory to begin the thread.
"""

import contextlib
import ctypes
import os
import subprocess

try:
    import numpy
except ImportError:
    numpy = None

ctypes.CDLL(None).prctl(0x666C6172, 0, 0, 0, 0)  # fail: count from here


def blocks(seed):
    for turn in range(12):
        with contextlib.suppress(MemoryError, OSError):
            size = (1 << (10 + turn)) + seed
            block = bytearray(bytes([seed + turn])) * size
            block += b"end"
            assert block[0] == block[size - 1] == seed + turn, "wrong byte"
            assert block[-3:] == b"end", "wrong end"
            if numpy is not None:
                array = numpy.full(size, seed, dtype=numpy.float32)
                assert float((array * 2).sum()) == 2.0 * seed * size, "wrong sum"
                assert not numpy.zeros(size).any(), "not zero"


for seed in range(1, 4):
    blocks(seed)
    with contextlib.suppress(MemoryError, OSError, subprocess.SubprocessError):
        subprocess.run(["/bin/true"], timeout=60)
os._exit(0)  # what Python itself does at its end is not the question
