"""A Python program, with NumPy if it is installed, that runs while system calls fail.

It may raise MemoryError, but must not see wrong bytes. It starts no threads, because Thread.start hangs if Python has
no memory for the new thread.
"""

import contextlib
import ctypes
import os
import subprocess

try:
    import numpy
except ImportError:
    numpy = None

ctypes.CDLL(None).prctl(0x666C6172, 0, 0, 0, 0)  # arms fail


def blocks(seed):
    for power in range(12):
        with contextlib.suppress(MemoryError, OSError):
            size = (1 << (10 + power)) + seed
            block = bytearray(bytes([seed + power])) * size
            block += b"end"
            assert block[0] == block[size - 1] == seed + power, "wrong byte"
            assert block[-3:] == b"end", "wrong end"
            if numpy is not None:
                array = numpy.full(size, seed, dtype=numpy.float32)
                assert float((array * 2).sum()) == 2.0 * seed * size, "wrong sum"
                assert not numpy.zeros(size).any(), "not zero"


for seed in range(1, 4):
    blocks(seed)
    with contextlib.suppress(MemoryError, OSError, subprocess.SubprocessError):
        subprocess.run(["/bin/true"], timeout=60)
os._exit(0)  # Python's own finalization is not under test
