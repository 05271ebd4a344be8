"""Takes memory until an allocation fails, then ends with status 3."""

import sys

MEGABYTE = 1 << 20
KEPT: list[bytes] = []


def step() -> None:
    KEPT.append(b"x" * (24 * MEGABYTE))


try:
    while True:
        step()
except MemoryError:
    sys.exit(3)
