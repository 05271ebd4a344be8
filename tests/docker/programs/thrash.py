"""Four processes read a file larger than their container until memory stalls. Prints whether the governor of this
process counted the stall."""

import ctypes
import mmap
import os
import random
import time

from governor import governor

MB = 1 << 20
FILE_MB = 250
HELD_MB = 80  # small processes have no governor
PATIENCE_SECONDS = 90

process = ctypes.CDLL(None)


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
deadline = time.monotonic() + PATIENCE_SECONDS
while governor()["pressure_events"] == 0 and time.monotonic() < deadline:
    time.sleep(0.2)
for pid in readers:
    os.kill(pid, 9)
print("counted" if governor()["pressure_events"] else f"not counted: {governor()}")
