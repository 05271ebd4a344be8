"""What the process holds, in MB."""

import resource
import time

PAGE = resource.getpagesize()


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * PAGE / 1e6


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def settled(below, seconds):
    """What it holds once that is less than `below`, or when the time is over. The main thread waits in C meanwhile."""
    end = time.monotonic() + seconds
    while resident() >= below and time.monotonic() < end:
        time.sleep(2)
    return resident()
