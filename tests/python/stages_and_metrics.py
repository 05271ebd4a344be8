"""Usage: stages_and_metrics.py MODE. Prints nothing; an assertion fails if a value is wrong."""

import asyncio
import re
import sys

import flarena
from flarena._stats import Stats

MB = 1 << 20


def touched(size):
    block = bytearray(size)
    for page in range(0, size, 4096):
        block[page] = 1
    return block


with flarena.stage("grow", round=1, site="a") as grow:
    kept = touched(64 * MB)
assert 60 * MB < grow.growth_bytes < 80 * MB, grow.growth_bytes
assert grow.is_new_peak and grow.peak_bytes >= 64 * MB, grow.peak_bytes
assert grow.seconds > 0
assert re.fullmatch(r"<flarena.stage 'grow': \+[67]\d\.\d MB, peak \d+\.\d MB, \d+\.\d s>", repr(grow)), grow
assert repr(flarena.stage("not yet")) == "<flarena.stage 'not yet'>"

with flarena.stage("idle") as idle:
    pass
assert not idle.is_new_peak and idle.peak_bytes >= 60 * MB, vars(idle)


@flarena.stage("call", round=2)
def call(value):
    """The text of the program."""
    return value + 1


@flarena.stage("await")
async def wait():
    await asyncio.sleep(0)
    return "waited"


assert call(1) == 2 and call.__doc__ == "The text of the program."
assert asyncio.run(wait()) == "waited"
try:
    with flarena.stage("fails"):
        raise KeyError("of the program")
except KeyError as error:
    assert error.args == ("of the program",)
else:
    raise AssertionError("the exception is lost")

sizes = flarena.metrics()
assert all(type(size) is float for size in sizes.values()), sizes
assert sizes["memory/rss_mb"] > 64 and sizes["memory/peak_rss_mb"] >= sizes["memory/rss_mb"], sizes
assert set(flarena.metrics("x_")) == {name.replace("memory/", "x_") for name in sizes}
assert ("memory/live_mb" in sizes) == flarena.loaded()

keys = set(Stats.__annotations__)
found = set(flarena.stats())
assert found == keys if flarena.loaded() else found < keys, found ^ keys
print(sys.argv[1] if flarena.loaded() else "not loaded")
