"""Runs 24 rounds and writes markers through the C function. With `leak` it keeps 4 MB per round."""

import ctypes
import sys

library = ctypes.CDLL(None)
library.flarena_mark.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_long)
kept = []
for number in range(24):
    model = bytearray(b"x") * (40 << 20)
    library.flarena_mark(b"receive", b"site-1", number)
    if sys.argv[1] == "leak":
        kept.append(bytearray(b"y") * (4 << 20))
    del model
    library.flarena_mark(b"send", b"site-1", number)
