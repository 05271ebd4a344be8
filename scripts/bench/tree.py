"""All processes of a run: the summed PSS, and their end. The benchmark adopts orphans, so they are its descendants."""

import contextlib
import os
import signal
import time

import measure


def descendants(root):
    """The ids of all processes below `root`."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat") as stat:
                parents[int(name)] = int(stat.read().rpartition(")")[2].split()[1])
    found, added = set(), {root}
    while added:
        added = {pid for pid, parent in parents.items() if parent in added}
        found |= added
    return found


def pss_bytes(pid):
    """Proportional set size: what a process uses, with each shared page divided among its users."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup") as rollup:
        for line in rollup:
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


class PssSampler(measure.Sampler):
    """Summed PSS of everything below the benchmark, weighted by time. Reading PSS costs time in proportion to the
    memory, so it rests nine times as long as it worked."""

    def __init__(self, pid, library):
        super().__init__(pid, library)
        self.next_s = self.last_s = time.monotonic()

    def sample(self):
        start = time.monotonic()
        if start < self.next_s:
            return
        with contextlib.suppress(OSError):
            self.owner_seen = self.owner_seen or self.is_mapped()
        total = sum(pss_bytes(pid) for pid in descendants(os.getpid()))
        now = time.monotonic()
        self.peak_bytes = max(self.peak_bytes, total)
        self.sum += total * (now - self.last_s)
        self.count += now - self.last_s
        self.last_s, self.next_s = now, now + max(0.1, 9 * (now - start))


def end_all():
    """Ends what is left of a run: job processes that started sessions of their own."""
    for pid in descendants(os.getpid()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
