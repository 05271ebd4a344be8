"""A program whose sites start while it runs: it allocates 40 MB in `cache` as soon as a file exists.

start_late.py FILE [without_ctypes|blocked|other_implementation|other_threads|forked]
"""

import os
import sys
import time

kind = sys.argv[2] if len(sys.argv) > 2 else ""
if kind != "without_ctypes":
    import ctypes  # noqa: F401
if kind == "other_implementation":
    sys.implementation.name = "pypy"
if kind == "other_threads":  # as gevent
    import _thread

    _thread.start_new_thread = lambda *arguments: sys.exit("the program's own code ran")

before = [b"x" * (32 << 20) for _ in range(3)]  # starts the governor


def cache():
    return [b"y" * (8 << 20) for _ in range(5)]


print(os.getpid(), flush=True)
if kind == "blocked":
    time.sleep(600)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
if kind == "forked" and os.fork():
    os.wait()
    sys.exit()
kept = cache()
with open(sys.argv[1], "w") as file:
    print(os.getpid(), file=file)
while True:
    time.sleep(0.01)
