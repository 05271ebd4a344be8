"""The library reads the same frames as the interpreter in cases that the self-check does not cover."""

import contextlib
import ctypes
import functools
import re
import sys

from flarena import _sites
from flarena._frame_check import FRAMES_BYTES, Comparison


def deep(comparison, depth):
    if depth:
        deep(comparison, depth - 1)
    else:
        comparison.compare("deep")


def several_lines(comparison):
    [
        1,
        comparison.compare("in the middle of a list"),
    ]
    try:
        raise ValueError
    except ValueError:
        comparison.compare("except")
    finally:
        comparison.compare("finally")
    with contextlib.suppress(Exception):
        comparison.compare("with")
    [comparison.compare("comprehension") for _ in range(2)]
    (lambda: comparison.compare("lambda"))()
    exec("\n\ncomparison.compare('exec')")
    re.sub("a", lambda found: (comparison.compare("re.sub"), "b")[1], "aa")
    functools.reduce(lambda one, other: comparison.compare("reduce"), [1, 2])
    f"{Shown(comparison)}"
    Größe(comparison)


class Shown:
    def __init__(self, comparison):
        self.comparison = comparison

    def __str__(self):
        self.comparison.compare("__str__")
        return ""


class Größe:  # a name with letters beyond ASCII
    def __init__(self, comparison):
        comparison.compare("a wide name")


assert _sites._ask is not None
comparison = Comparison(_sites._ask, ctypes.create_string_buffer(FRAMES_BYTES))
for depth in range(0, 60, 7):
    deep(comparison, depth)
several_lines(comparison)
deep(comparison, 900)
print(_sites.request("who").count('"python":true'), comparison.different, comparison.count > 20)
sys.exit(bool(comparison.different))
