"""rounds.py CASE: a program that drops a block of 32 MB in each round, in most cases in a reference cycle.

Prints the result in one line. The blocks are few objects, so Python's own collector never runs.
"""

import atexit
import functools
import gc
import os
import signal
import sys
import threading
import time

import flarena

MB = 1 << 20
BLOCK = 32 * MB


class Node:
    """A reference cycle that holds a block."""

    on_end = None

    def __init__(self):
        self.block = bytearray(BLOCK)
        self.me = self

    def __del__(self):
        if Node.on_end:
            Node.on_end()


def drop():
    """Drops a block in a cycle whose objects are old, so only a full collection finds it."""
    node = Node()
    gc.collect(1)
    del node


def live():
    recycler = flarena.stats()["recycler"]
    assert recycler["enabled"], "the recycler is off, so large blocks are not counted"
    return recycler["live_bytes"]


def collections():
    return gc.get_stats()[-1]["collections"]


def report(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


EARNED = []


def earn_time():
    """Collections may take a hundredth of the time. The first are dearer, the more so on a busy machine. After
    `freeze_start` they take less than 0.1 ms."""
    seconds = 0.02 if EARNED else 1.5
    time.sleep(seconds)
    EARNED.append(seconds)


def highest_of(rounds, mark):
    highest = 0
    for number in range(rounds):
        drop()
        earn_time()
        mark(number)
        highest = max(highest, live())
    return highest // MB


def mark(number=None):
    flarena.mark("validate", None, number)


def shape(highest):
    return "flat" if highest <= 6 * 32 else "grows"


def at_markers():
    report(shape(highest_of(30, mark)))


def young():
    """Garbage of young objects needs no full collection. A stop of 5 s looks like a rest, which has one."""
    before, highest = collections(), 0
    for number in range(30):
        Node()
        earn_time()
        mark(number)
        highest = max(highest, live())
    fulls = collections() - before
    report(shape(highest // MB), "young" if fulls <= 3 else f"{fulls} full collections")


def at_trims():
    report(shape(highest_of(30, lambda _: flarena.trim())))


def waiting_in_collections():
    """The cost of a collection is its CPU time, not the time that it waits."""
    Node.on_end = lambda: time.sleep(0.3)
    highest = highest_of(10, lambda number: (time.sleep(0.1), mark(number)))
    Node.on_end = None
    report(shape(highest))


def forked():
    highest_of(5, mark)
    if os.fork() == 0:
        at_markers()
        os._exit(0)
    os.wait()


def at_rest():
    """A block that was in use at the collection of the last stage is dropped after it."""
    kept = [Node() for _ in range(3)]
    highest_of(5, mark)
    before = collections()
    kept.clear()
    end = time.monotonic() + 60
    while live() > BLOCK and time.monotonic() < end:
        time.sleep(0.1)
    report("collected" if live() <= BLOCK else f"{live() // MB} MB", collections() - before)


def before_wait():
    """Blocks that were in use at the last collection are dropped, then the program trims before it waits."""
    mark()
    kept = [Node() for _ in range(3)]
    gc.collect()
    kept.clear()
    time.sleep(2)
    growth = live()
    mark()
    growth -= live()
    flarena.trim()
    report(growth // MB, live() // MB)


def busy_threads():
    answers = []

    def work():
        for number in range(10):
            drop()
            earn_time()
            mark(number)
        answers.append(live() // MB)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report("flat" if min(answers) <= 20 * 32 and len(answers) == 4 else answers)


def disabled():
    gc.disable()
    report(shape(highest_of(10, mark)))


def frozen():
    keep = Node()
    keep.block = bytearray(BLOCK)
    gc.collect()
    gc.freeze()
    del keep
    number = gc.get_freeze_count()
    highest_of(10, mark)
    # Frozen objects stay, also an unreachable cycle.
    report(gc.get_freeze_count() == number, shape(live() // MB), live() // MB >= 32)


def callbacks_cleared():
    """Each collection releases far more than its time is worth, so each round has one, on a busy machine too."""
    mark()
    highest_of(2, mark)
    time.sleep(2)  # pays for the first collections, which are dearer, the more so on a busy machine
    counts = [collections()]
    for _ in range(2):
        shown = shape(highest_of(20, mark))
        counts.append(collections())
        gc.callbacks.clear()
    report(shown, counts[1] - counts[0], counts[2] - counts[1])


def callbacks_cleared_within():
    """The program clears gc.callbacks in the middle of a collection, so that its end is not reported."""
    mark()
    Node.on_end = gc.callbacks.clear
    Node()
    gc.collect()
    Node.on_end = None
    report(shape(highest_of(30, mark)))


class Handler:
    def __call__(self, number, frame):
        mark()

    def method(self, number, frame):
        mark()


def handle(number, frame):
    mark()


def handlers():
    mark()
    for handler in (handle, Handler(), Handler().method, functools.partial(handle), lambda *_: mark()):
        signal.signal(signal.SIGUSR1, handler)
        for _ in range(4):
            drop()
        time.sleep(1)  # also for the collection of young objects, and on a busy machine
        before = collections()
        os.kill(os.getpid(), signal.SIGUSR1)
        inside = collections() - before
        mark()
        report(type(handler).__name__, inside, collections() - before)


def handlers_without_reads():
    """The search for signal handlers reads no attribute of a handler, whose class and key may run code."""
    ran = []

    class Meta(type):
        def __getattribute__(cls, name):
            ran.append(name)
            return super().__getattribute__(name)

    class Hostile(metaclass=Meta):
        def __getattribute__(self, name):
            ran.append(name)
            raise ValueError(name)

        def __call__(self, number, frame):
            mark()

    mark()
    signal.signal(signal.SIGUSR1, Hostile())
    for _ in range(4):
        drop()
    time.sleep(1)  # as in `handlers`
    ran.clear()
    before = collections()
    os.kill(os.getpid(), signal.SIGUSR1)
    inside = collections() - before
    mark()
    report(inside, collections() - before, ran)


def finalizers():
    """A finalizer writes a marker during a collection, which starts no second one."""
    depth, deepest = 0, 0

    def watch(phase, info):
        nonlocal depth, deepest
        depth += 1 if phase == "start" else -1
        deepest = max(deepest, depth)

    gc.callbacks.append(watch)
    Node.on_end = mark
    highest = highest_of(20, mark)
    Node.on_end = None
    report(deepest, shape(highest))


def no_python_code():
    """A collection may begin anywhere in C. If Python code ran then, other threads could run in between."""
    mark()
    ran = []
    sys.setprofile(lambda frame, event, _: ran.append(frame.f_code.co_name) if event == "call" else None)
    gc.collect()
    sys.setprofile(None)
    report(len(gc.callbacks), ran)


def ending():
    """Markers in atexit functions and in threads that outlive the main thread start no collection."""
    mark()
    nodes = [Node() for _ in range(20)]
    before = collections()
    main_ended = threading.Event()

    def late():
        main_ended.wait(60)
        nodes.clear()
        mark()

    def at_exit():
        mark()
        report(collections() - before)

    atexit.register(at_exit)
    threading.Thread(target=late).start()
    threading.Thread(target=lambda: (threading.main_thread().join(), main_ended.set())).start()


def subinterpreter():
    """Markers work in a subinterpreter, and start no collection there."""
    import subinterpreters

    mark()
    code = """
import gc
import flarena
def work():
    cycle = [bytearray(32 << 20)]
    cycle.append(cycle)
before = gc.get_stats()[-1]["collections"]
for _ in range(8):
    work()
    flarena.mark("inside")
import flarena._collector
print("collector", flarena._collector.watch(), "and", gc.get_stats()[-1]["collections"] - before, "collections")
"""
    subinterpreters.run_string(subinterpreters.create(), code)


def freeze_start():
    """Makes the collections cheap: they pass over the objects that exist now."""
    live()  # imports what it needs
    gc.freeze()


if __name__ == "__main__":
    freeze_start()
    globals()[sys.argv[1]]()
