"""Duration of hibernation: a block of random bytes goes to swap while this program is idle, and comes back.

    FLARENA_HIBERNATE=2 LD_PRELOAD=.../libflarena.so hibernate.py [MB]     on a machine with swap

Prints seconds and megabytes for four steps: page out, page in at a marker, page out again unchanged, and fault all
pages in from the disk.
"""

import ctypes
import json
import os
import sys
import time

POLL_S = 0.01
TIMEOUT_S = 60


def status_mb(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field + ":")) / 1024


def seconds_until(is_done):
    start = time.monotonic()
    while not is_done():
        if time.monotonic() - start > TIMEOUT_S:
            sys.exit("hibernate.py: no page moved within a minute: add swap and set FLARENA_HIBERNATE")
        time.sleep(POLL_S)
    return time.monotonic() - start


def page_out(swapped_mb):
    """Seconds from the first page that goes to swap to the last one."""
    seconds_until(lambda: status_mb("VmSwap") > 4)
    return seconds_until(lambda: status_mb("VmSwap") > swapped_mb)


def page_in(library):
    library.flarena_mark(b"back", None, -1)
    return seconds_until(lambda: status_mb("VmSwap") < 4)


def main():
    size_mb = int(sys.argv[1]) if len(sys.argv) > 1 else 512
    library = ctypes.CDLL(None)
    library.flarena_mark.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_long]
    block = bytearray(os.urandom(size_mb << 20))
    values = {"block_mb": size_mb, "rss_mb": status_mb("VmRSS")}
    values["out_s"] = page_out(size_mb * 0.98)
    values["rss_out_mb"] = status_mb("VmRSS")
    values["back_s"] = page_in(library)
    values["again_out_s"] = page_out(size_mb * 0.98)
    time.sleep(1)
    start = time.monotonic()
    sum(block[::4096])
    values["touched_s"] = time.monotonic() - start
    print(json.dumps({name: round(value, 2) for name, value in values.items()}))


if __name__ == "__main__":
    main()
