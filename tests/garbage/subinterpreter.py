"""The package in a subinterpreter: markers work there, and start no collection."""

import sys

try:
    import _xxsubinterpreters as interpreters
except ImportError:
    try:
        import _interpreters as interpreters
    except ImportError:
        print("this Python has no module for subinterpreters")
        sys.exit(77)

CODE = """
import gc, sys
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

import flarena  # noqa: E402

flarena.mark("outside")
if sys.version_info < (3, 12):
    one = interpreters.create()
else:
    one = interpreters.create("legacy") if sys.version_info >= (3, 13) else interpreters.create(isolated=False)
interpreters.run_string(one, CODE)
