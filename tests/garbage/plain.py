"""plain.py CASE: a Python program without stages and without our package, whose cycles hold large blocks.

Only the library's own thread can ask it for a collection. Prints what came of it, in one line.
"""

import ctypes
import gc
import os
import signal
import subprocess
import sys
import time

MB = 1 << 20
shim = ctypes.CDLL(None)
shim.flarena_large_live_bytes.restype = ctypes.c_size_t


def live_mb():
    return shim.flarena_large_live_bytes() // MB


def forget(mb):
    """Blocks that are touched, one after another: only what is resident when one is allocated is worth a governor."""
    me = [b"x" * (20 * MB) for _ in range(mb // 20)]
    me.append(me)


def patiently(holds, seconds=30):
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.05)
    return holds()


def idle():
    """It waits, and holds far more than it needs."""
    forget(200)
    print("collected" if patiently(lambda: live_mb() < 20) else live_mb())


def idle_and_off():
    forget(200)
    gc.disable()
    print("left alone" if not patiently(lambda: live_mb() < 20, 4) else "collected")


def live():
    """It waits, and what it holds is no garbage: asked once, then left alone."""
    done = gc.get_stats()[-1]["collections"]
    hold = [b"x" * (20 * MB) for _ in range(10)]
    patiently(lambda: gc.get_stats()[-1]["collections"] > done)
    patiently(lambda: False, 4)
    print(gc.get_stats()[-1]["collections"] - done, len(hold))


def near_limit():
    """At work near FLARENA_MEMORY_LIMIT=400M: the garbage goes before the limit comes."""
    highest = 0
    for _ in range(60):
        forget(20)
        end = time.monotonic() + 0.2  # on a busy machine the governor gets its turn late
        while time.monotonic() < end:  # busy: never idle
            pass
        highest = max(highest, live_mb())
    print("below the limit" if highest < 600 else f"{highest} MB")


def trim():
    """trim COMMAND: asked by `flarena trim`, in a child of this process."""
    forget(60)
    with subprocess.Popen([sys.argv[2], "trim", str(os.getpid())], stdout=subprocess.PIPE, text=True) as asker:
        patiently(lambda: asker.poll() is not None)
        print(asker.stdout.read().partition("returned, ")[2].strip(), live_mb())


def trim_in_handler():
    """Asked while a signal handler runs: not there."""

    def handler(number, frame):
        with subprocess.Popen([sys.argv[2], "trim", str(os.getpid())], stdout=subprocess.PIPE, text=True) as asker:
            patiently(lambda: asker.poll() is not None)
            print(asker.stdout.read().partition(", and ")[2].strip(), live_mb())

    signal.signal(signal.SIGUSR1, handler)
    forget(60)
    os.kill(os.getpid(), signal.SIGUSR1)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
