"""Subinterpreters that share the lock of the main interpreter, as those of programs that embed Python."""

import sys

try:
    import _interpreters as interpreters  # from Python 3.13 on
except ImportError:
    import _xxsubinterpreters as interpreters

run_string, destroy = interpreters.run_string, interpreters.destroy


def create():
    if sys.version_info < (3, 12):
        return interpreters.create()
    return interpreters.create("legacy") if sys.version_info >= (3, 13) else interpreters.create(isolated=False)
