"""The first use of the package where an import would fail or wait for ever. Prints what mark() returns.

marks_at_any_time.py signal_handler|finalizer|fork
"""

import os
import signal
import sys
import threading

import flarena


def at_module(reached):
    """A trace function that calls `reached` when a module of the package begins to run."""

    def trace(frame, event, _argument):
        if frame.f_code.co_name == "<module>" and os.sep + "flarena" + os.sep in frame.f_code.co_filename:
            reached()

    return trace


def signal_handler():
    """A handler marks while the thread that it interrupts marks."""
    results = []
    signal.signal(signal.SIGTERM, lambda *_: results.append(flarena.mark("terminated")))
    sys.settrace(at_module(lambda: signal.raise_signal(signal.SIGTERM)))
    flarena.mark("first")
    sys.settrace(None)
    signal.raise_signal(signal.SIGTERM)
    print(*set(results))


class Last:
    def __del__(self, package=flarena, write=os.write):
        write(1, b"%s\n" % str(package.mark("last")).encode())


def finalizer():
    """An object marks that Python deletes at its end, when no module can be imported any more."""
    global last
    last = Last()


def fork():
    """A thread marks while another one forks, and the child marks, too."""
    inside, forked = threading.Event(), threading.Event()

    def first():
        sys.settrace(at_module(lambda: (inside.set(), forked.wait())))
        flarena.mark("first")
        inside.set()

    thread = threading.Thread(target=first)
    thread.start()
    inside.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os.write(1, b"%s\n" % str(flarena.mark("child")).encode())
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    forked.set()
    thread.join()
    if status:
        print("the child waited for ever")


{case.__name__: case for case in (signal_handler, finalizer, fork)}[sys.argv[1]]()
