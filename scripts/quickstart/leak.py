"""leak.py ROUNDS: a loop with a typical leak, a history that is never emptied."""

import sys

import flarena
import numpy as np

MEGABYTES = 8
ELEMENTS = MEGABYTES * 1024 * 1024 // np.dtype(np.float32).itemsize


def update(number):
    gradient = np.full(ELEMENTS, number, dtype=np.float32)
    return gradient * np.float32(0.1)


def main(rounds):
    history = []
    for number in range(rounds):
        history.append(update(number))
        flarena.mark("round", round=number)


main(int(sys.argv[1]))
