"""Grows beyond memory.high of its group, where cgroup v2 makes it stall. Prints whether the governor of this process
counted the stall."""

from library import becomes_true, counts_stalls, process, stats

MB = 1 << 20
HIGH = "/sys/fs/cgroup/job/memory.high"
held = []


def grow(megabytes):
    held.extend(bytearray(b"x" * MB) for _ in range(megabytes))


def stalls_by_growth():
    if len(held) < 200:
        grow(20)
    return counts_stalls()


def write(limit):
    with open(HIGH, "w") as high:
        high.write(limit)


grow(80)
process.flarena_trim()  # wakes the governor
write(str(100 * MB))
becomes_true(stalls_by_growth, 60)
write("max")
print("counted" if counts_stalls() else f"not counted: {stats()}")
