"""Searches for holders with little time. Prints the holders."""

import sys
import threading

import flarena
from flarena import _cpython, _holders, _referrers

SIZE = 8 << 20
kept = bytearray(SIZE)


def busy():
    """Another thread runs Python code while the search waits, for longer than the search may take."""

    def spin():
        while not is_over:
            pass

    is_over = False
    interval = sys.getswitchinterval()
    spinner = threading.Thread(target=spin)
    spinner.start()
    sys.setswitchinterval(1)
    lines = flarena.holders(seconds=1)
    sys.setswitchinterval(interval)
    is_over = True
    spinner.join()
    print(*lines)


def in_module():
    """The search asks the collector for no object."""

    def refuse(*_):
        raise AssertionError("a walk through all objects")

    _holders.get_objects = _referrers.get_referrers = refuse
    print(*flarena.holders(seconds=60))


def cut():
    """The search has no time at all."""
    box = [bytearray(SIZE)]
    search = _referrers.Search(_cpython.RunningLocals(_referrers.OWN_MODULES), deadline=0)
    print(search.chain(box[0], (), SIZE, set())["text"])


globals()[sys.argv[1]]()
