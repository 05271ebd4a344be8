"""A program whose sites start while it runs: it allocates 40 MB in `cache` as soon as a file exists.

start_late.py FILE [without_ctypes|blocked|other_implementation|other_threads|import_hook|own_functions|forked]
"""

import builtins
import os
import sys
import threading
import time

kind = sys.argv[2] if len(sys.argv) > 2 else ""
if kind != "without_ctypes":
    import ctypes
if kind == "other_implementation":
    sys.implementation.name = "pypy"


def own_code(*arguments):
    print("the check ran code of the program", flush=True)
    os._exit(1)


def churn():
    while True:
        for size in (600, 3000, 100_000, 3 << 20):
            bytearray(size)


for _ in range(2):
    threading.Thread(target=churn, daemon=True).start()
before = [b"x" * (32 << 20) for _ in range(3)]  # starts the governor


def cache():
    return [b"y" * (8 << 20) for _ in range(5)]


if kind == "other_threads":  # the main thread must not wait for another one
    import _thread

    _thread.start_new_thread = own_code
if kind == "import_hook":

    class Finder:
        find_spec = staticmethod(own_code)

    for name in ("atexit", "gc", "__future__"):
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, Finder)
functions = []
if kind == "own_functions":
    import gc

    def replacement(function):
        def call(*arguments, print=print, exit=os._exit):
            print("the check ran a function of the program instead of", function, flush=True)
            exit(1)

        return call

    functions = [
        (names, name, replacement(name), function)
        for names in map(vars, (builtins, sys, gc, ctypes, threading))
        for name, function in names.items()
        if callable(function) and not isinstance(function, type)
    ]
if kind == "blocked":  # a child writes the number, so the main thread is in C already
    read, write = os.pipe()
    os.set_inheritable(read, True)
    os.system(f"echo $PPID; cat <&{read}")  # until this process ends
print(os.getpid(), flush=True)
for names, name, own, _ in functions:
    names[name] = own
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
for names, name, _, function in functions:
    names[name] = function
if kind == "forked" and os.fork():
    os.wait()
    sys.exit()
kept = cache()
with open(sys.argv[1], "w") as file:
    print(os.getpid(), file=file)
while True:
    time.sleep(0.01)
