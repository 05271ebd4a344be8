"""A few rounds with markers: one site keeps a block each round, one keeps its first."""

import sys

import flarena

GROWING, STEADY = [], []
SECRET = sys.argv[1]


def keep_more(argument):
    GROWING.append(bytes(3 << 20))


STEADY.append(bytes(5 << 20))
for number in range(4):
    keep_more(SECRET)
    flarena.mark("validate", site="site-1", round=number)
