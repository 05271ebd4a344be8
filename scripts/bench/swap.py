"""Swap for the runs that need some: the machine's own where there is enough, or a file for as long as they last."""

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
    """Raises Failed where the machine has too little and gives us none."""
    if free_mb() >= size_mb:
        yield
        return
    try:
        try:
            make(size_mb)
        except (OSError, subprocess.CalledProcessError) as error:
            raise Failed(f"no swap: {error}") from error
        try:
            yield
        finally:
            subprocess.run(["swapoff", FILE], check=True)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(FILE)


def free_mb():
    return machine.bytes_of("/proc/meminfo", "SwapFree") >> 20


def make(size_mb):
    """Written in full: the kernel takes no file with holes."""
    with open(FILE, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        for _ in range(size_mb):
            file.write(bytes(MB))
    for tool in ("mkswap", "swapon"):
        subprocess.run([tool, FILE], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
