"""All processes of a run. The benchmark adopts orphans, so all of them are its descendants."""

import contextlib
import os
import time

import measure


def pss_bytes(pid):
    """Proportional set size: each shared page counts in equal parts for all processes that map it."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup") as rollup:
        for line in rollup:
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


class PssSampler(measure.Sampler):
    """Samples the summed PSS of all descendants, weighted by time. Reading PSS is slow with much memory, so a pause of
    nine times its duration follows each sample."""

    def __init__(self, pid, library):
        super().__init__(pid, library)
        self.next_s = self.last_s = time.monotonic()

    def sample(self):
        start = time.monotonic()
        if start < self.next_s:
            return
        with contextlib.suppress(OSError):
            self.library_seen = self.library_seen or self.is_mapped()
        total = sum(pss_bytes(pid) for pid in measure.descendants(os.getpid()))
        now = time.monotonic()
        self.peak_bytes = max(self.peak_bytes, total)
        self.sum += total * (now - self.last_s)
        self.count += now - self.last_s
        self.last_s, self.next_s = now, now + max(0.1, 9 * (now - start))
