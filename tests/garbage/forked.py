"""forked.py CASE [COMMAND]: a program that loads a table of small objects and forks a worker that shares it.

A full collection would write to each object of the table, and so give the process its own copy. Prints the number
of full collections that ran where none may run, and where one must run.
"""

import gc
import os
import subprocess
import sys
import time

import flarena

MB = 1 << 20
TABLE = [{"row": [number]} for number in range(100_000)]


def collections():
    return gc.get_stats()[-1]["collections"]


def within(seconds, action):
    """Repeats the action until a full collection has run. Returns the number of collections."""
    before, end = collections(), time.monotonic() + seconds
    while collections() == before and time.monotonic() < end:
        action()
        time.sleep(0.05)
    return collections() - before


def hold(mb):
    return [bytearray(20 * MB) for _ in range(mb // 20)]


def in_worker(work):
    """Runs `work` in a forked process and prints its result."""
    sys.stdout.flush()
    if os.fork() == 0:
        print(work(), flush=True)
        os._exit(0)
    os.wait()


def markers():
    flarena.mark("start")
    in_worker(lambda: (hold(60), within(1, lambda: flarena.mark("worked")))[1])


def idle():
    in_worker(lambda: (hold(80), within(4, lambda: None))[1])


def trim():
    def work():
        blocks = hold(60)
        command = [sys.argv[2], "trim", str(os.getpid())]
        before, answer = collections(), ""
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            while process.poll() is None:
                time.sleep(0.01)
            answer = process.stdout.read().partition("; ")[2].strip()
        del blocks
        return f"{answer} {collections() - before}"

    in_worker(work)


def parent():
    """The parent is collected again after its worker has ended."""
    flarena.mark("start")
    read, write = os.pipe()
    worker = os.fork()
    if worker == 0:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    blocks = hold(60)
    with_worker = within(1, lambda: flarena.mark("worked"))
    os.write(write, b"x")
    os.waitpid(worker, 0)
    print(with_worker, within(30, lambda: flarena.mark("worked")))
    del blocks


if __name__ == "__main__":
    globals()[sys.argv[1]]()
