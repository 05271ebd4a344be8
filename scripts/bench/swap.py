"""Provides swap during a run: the machine's own, or else a temporary file."""

import contextlib
import os
import subprocess

import machine
from measure import MB
from model import Failed
from places import BUILD

FILE = os.path.join(BUILD, "swapfile")


@contextlib.contextmanager
def at_least(size_mb):
    """Raises Failed when the machine has too little swap and a file cannot be added."""
    if free_mb() >= size_mb:
        yield
        return
    try:
        try:
            add_file(size_mb)
        except (OSError, subprocess.CalledProcessError) as error:
            raise Failed(f"cannot add swap: {error}") from error
        try:
            yield
        finally:
            subprocess.run(["swapoff", FILE], check=True)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(FILE)


def free_mb():
    return machine.bytes_of("/proc/meminfo", "SwapFree") >> 20


def add_file(size_mb):
    """Creates and activates the swap file. It is written in full, because the kernel refuses files with holes."""
    with open(FILE, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        for _ in range(size_mb):
            file.write(bytes(MB))
    for tool in ("mkswap", "swapon"):
        subprocess.run([tool, FILE], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
