"""Rounds with markers: one site keeps a block in each round, another keeps one block."""

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
