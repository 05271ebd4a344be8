"""Four processes read a file larger than their container until memory stalls. Prints whether the governor of this
process counted the stall."""

import mmap
import os
import random

from library import becomes_true, counts_stalls, process, stats

MB = 1 << 20
FILE_MB = 250
HELD_MB = 80  # small processes have no governor


def reader(path):
    with open(path, "rb") as file:
        view = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        while True:
            view[random.randrange(len(view))]


with open("/tmp/thrash", "wb") as file:
    for _ in range(FILE_MB):
        file.write(os.urandom(MB))
held = bytearray(os.urandom(HELD_MB * MB))
process.flarena_trim()  # wakes the governor
readers = []
for _ in range(4):
    readers.append(os.fork())
    if readers[-1] == 0:
        reader("/tmp/thrash")
becomes_true(counts_stalls, 90)
for pid in readers:
    os.kill(pid, 9)
print("counted" if counts_stalls() else f"not counted: {stats()}")
