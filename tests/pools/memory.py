"""The resident memory of this process, in MB."""

import json
import resource
import time

PAGE = resource.getpagesize()


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * PAGE / 1e6


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def idle(below, seconds):
    """Sleeps until less than `below` is resident, at most so many seconds. Returns the resident MB.

    The sleeps are short, because the main thread has a second for a request to release a pool.
    """
    end = time.monotonic() + seconds
    while (held := resident()) >= below and time.monotonic() < end:
        time.sleep(0.2)
    return held


def show(line):
    """Prints a line of JSON with whole numbers. 189.7 is below 190, and must not become 190."""
    print(json.dumps({key: int(value) if isinstance(value, float) else value for key, value in line.items()}))
