"""Grows beyond memory.high of its group, where cgroup v2 makes it stall. Prints whether the governor of this process
counted the stall."""

import ctypes
import time

from governor import governor

MB = 1 << 20
PATIENCE_SECONDS = 60

process = ctypes.CDLL(None)

held = [bytearray(b"x" * MB) for _ in range(80)]
process.flarena_trim()  # wakes the governor
with open("/sys/fs/cgroup/job/memory.high", "w") as high:
    high.write(str(100 * MB))
deadline = time.monotonic() + PATIENCE_SECONDS
while governor()["pressure_events"] == 0 and time.monotonic() < deadline:
    if len(held) < 200:
        held.append(bytearray(b"x" * MB))
with open("/sys/fs/cgroup/job/memory.high", "w") as high:
    high.write("max")
print("counted" if governor()["pressure_events"] else f"not counted: {governor()}")
