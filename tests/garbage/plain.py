"""plain.py CASE: a Python program without stages and without the package flarena, whose cycles hold large blocks.

Only the governor can request a collection. Prints the result in one line.
"""

import _signal
import atexit
import builtins
import ctypes
import gc
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time

MB = 1 << 20
library = ctypes.CDLL(None)
library.flarena_large_live_bytes.restype = ctypes.c_size_t


def live_mb():
    return library.flarena_large_live_bytes() // MB


def drop_young(mb):
    """Drops a cycle with touched blocks. An allocation starts the governor if RSS is large enough."""
    cycle = [b"x" * (20 * MB) for _ in range(mb // 20)]
    cycle.append(cycle)
    return cycle


def drop_cycle(mb):
    """The same with old objects, so only a full collection finds it."""
    cycle = drop_young(mb)
    gc.collect(1)
    del cycle


def becomes_true(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def highest_live_mb(rounds, drop):
    """Of a program that is never idle. It gives the governor time on a busy machine."""
    highest = 0
    for _ in range(rounds):
        drop(20)
        end = time.monotonic() + 0.2
        while time.monotonic() < end:
            pass
        highest = max(highest, live_mb())
    return highest


def trim_from_outside(separator):
    """A child runs `flarena trim` for this process. Returns its answer behind the separator, and the MB left."""
    with subprocess.Popen([sys.argv[2], "trim", str(os.getpid())], stdout=subprocess.PIPE, text=True) as command:
        becomes_true(lambda: command.poll() is not None)
        return command.stdout.read().partition(separator)[2].strip(), live_mb()


def idle():
    """An idle program with garbage is collected."""
    drop_cycle(200)
    print("collected" if becomes_true(lambda: live_mb() < 20) else live_mb())


def idle_and_off():
    drop_cycle(200)
    gc.disable()
    print("collected" if becomes_true(lambda: live_mb() < 20, 4) else "not collected")


def busy():
    """A busy program far from any limit is collected by its young objects.

    A machine that stops the whole process for a second makes it look idle, and an idle program is collected fully.
    """
    before = gc.get_stats()[-1]["collections"]
    highest = highest_live_mb(40, drop_young)
    fulls = gc.get_stats()[-1]["collections"] - before
    print("flat" if highest < 500 else f"{highest} MB", "young" if fulls <= 3 else f"{fulls} full collections")


def busy_old():
    """A busy program without stages is collected fully if its young objects leave much growth."""
    highest = highest_live_mb(40, drop_cycle)
    print("flat" if highest < 400 else f"{highest} MB")  # of 800


def near_limit():
    """A busy program near FLARENA_MEMORY_LIMIT=400M is collected before it grows far beyond the limit."""
    highest = highest_live_mb(60, drop_cycle)
    print("not far beyond it" if highest < 800 else f"{highest} MB")  # of 1200


def trim():
    drop_cycle(60)
    print(*trim_from_outside("returned, "))


def trim_in_handler():
    """A trim that is requested while a signal handler runs collects nothing."""

    def handler(number, frame):
        print(*trim_from_outside("; "))

    gc.set_threshold(100_000)  # the handler's objects must not start a collection of young objects
    signal.signal(signal.SIGUSR1, handler)
    drop_cycle(60)
    os.kill(os.getpid(), signal.SIGUSR1)


def trim_in_c():
    """A trim that is requested while the main thread waits in C code collects nothing."""
    drop_cycle(60)
    with tempfile.NamedTemporaryFile("r") as output:
        # The thread is in C before the command starts, and until it ends.
        os.system(f"{shlex.quote(sys.argv[2])} trim {os.getpid()} >{output.name}")
        print(output.read().partition("; ")[2].strip())


def trim_after_ctrl_c():
    """Ctrl-C ends the program, and a trim is requested while its atexit functions run."""

    atexit.register(trim_from_outside, "; ")
    sys.excepthook = lambda *_: None
    signal.signal(signal.SIGINT, signal.default_int_handler)
    drop_cycle(60)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(30)


def trim_without_own_code():
    """A trim is requested while the program has replaced the interpreter's functions. Prints those that are called."""
    called = []

    def recorder(name, function):
        def call(*arguments, **named):
            called.append(name)
            return function(*arguments, **named)

        return call

    drop_cycle(60)
    waitpid, sleep = os.waitpid, time.sleep  # neither calls a function by its name
    command = subprocess.Popen([sys.argv[2], "trim", str(os.getpid())], stdout=subprocess.PIPE, text=True)
    replaced = [
        (names, name, recorder(name, function), function)
        for names in map(vars, (builtins, sys, gc, _signal, threading))
        for name, function in names.items()
        if callable(function) and not isinstance(function, type)
    ]
    for names, name, own, _ in replaced:
        names[name] = own
    while waitpid(command.pid, os.WNOHANG) == (0, 0):
        sleep(0.01)
    calls = [*called]
    for names, name, _, function in replaced:
        names[name] = function
    command.returncode = 0
    print(command.stdout.read().partition("returned, ")[2].strip(), live_mb(), calls)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
