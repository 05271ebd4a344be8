"""What hibernation takes: a block of random bytes goes to swap when this program is idle, and comes back.

    FLARENA_HIBERNATE=2 LD_PRELOAD=.../libflarena.so hibernate.py [MB]     on a machine with swap

Prints seconds and megabytes: out, back at a mark, out again unchanged, and until the program has touched each page, which
the disk must read by then.
"""

import ctypes
import json
import os
import sys
import time

LOOK_S = 0.01
PATIENCE_S = 60


def status_mb(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field + ":")) / 1024


def seconds_until(is_over):
    start = time.monotonic()
    while not is_over():
        if time.monotonic() - start > PATIENCE_S:
            sys.exit("nothing happens: is there swap, and FLARENA_HIBERNATE?")
        time.sleep(LOOK_S)
    return time.monotonic() - start


def out(most_mb):
    """From the first page that goes to the last."""
    seconds_until(lambda: status_mb("VmSwap") > 4)
    return seconds_until(lambda: status_mb("VmSwap") > most_mb)


def back(library):
    library.flarena_mark(b"back", None, -1)
    return seconds_until(lambda: status_mb("VmSwap") < 4)


def main():
    size_mb = int(sys.argv[1]) if len(sys.argv) > 1 else 512
    library = ctypes.CDLL(None)
    library.flarena_mark.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_long]
    block = bytearray(os.urandom(size_mb << 20))
    found = {"block_mb": size_mb, "rss_mb": status_mb("VmRSS")}
    found["out_s"] = out(size_mb * 0.98)
    found["rss_out_mb"] = status_mb("VmRSS")
    found["back_s"] = back(library)
    found["again_out_s"] = out(size_mb * 0.98)
    time.sleep(1)
    start = time.monotonic()
    sum(block[::4096])
    found["touched_s"] = time.monotonic() - start
    print(json.dumps({name: round(value, 2) for name, value in found.items()}))


if __name__ == "__main__":
    main()
