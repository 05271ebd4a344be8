"""The task of every recipe, and the memory of the workers that ran it.

The task has a model of 128 MB in arrays of 8 MB, three steps of SGD with momentum, and 60 MB of records of 1 to 4 KB.
Every hundredth record stays in the worker, like a cache or an index.
"""

import time

import numpy as np

ARRAYS, ELEMENTS = 16, (8 << 20) // 4
RECORDS = 25_000
MUCH_MB = 24
# An idle heap is trimmed soon; after trims that released little, later.
QUIET_S, PATIENCE_S = 3, 90

kept = []


def work(seed):
    """One task; its result depends on every byte of the model."""
    rng = np.random.default_rng(seed)
    records = [bytes(1024 + 3072 * (i % 17) // 16) for i in range(RECORDS)]
    kept.extend(records[::100])
    weights = [rng.standard_normal(ELEMENTS, dtype=np.float32) for _ in range(ARRAYS)]
    momentum = [np.zeros_like(w) for w in weights]
    for _ in range(3):
        for i, w in enumerate(weights):
            momentum[i] = momentum[i] * np.float32(0.9) + w * np.float32(0.01)
            weights[i] = w - np.float32(0.1) * momentum[i]
    return float(sum(np.abs(w).sum(dtype=np.float64) for w in weights))


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as pids:
        return [int(child) for child in pids.read().split()]


class Workers:
    """The memory of worker processes before their tasks, at its peak, and when they are idle."""

    def __init__(self, framework, pids):
        self.framework, self.pids = framework, sorted(pids)
        self.before = self._read("VmRSS")

    def show(self):
        after = self._when_quiet()
        print(f"{self.framework:<12}{'pid':>8}{'library':>9}{'before MB':>11}{'peak MB':>9}{'after MB':>10}")
        for row in zip(self.pids, self._loaded(), self.before, self._read("VmHWM"), after):
            print("{:<12}{:>8}{:>9}{:>11}{:>9}{:>10}".format("worker", *row))

    def _when_quiet(self):
        """RSS when it no longer falls. Near the size before the tasks a few seconds are enough to know."""
        lowest, fell = self._read("VmRSS"), time.monotonic()
        while time.monotonic() < fell + (QUIET_S if self._is_back(lowest) else PATIENCE_S):
            time.sleep(0.5)
            rss = self._read("VmRSS")
            if sum(rss) < sum(lowest):
                lowest, fell = rss, time.monotonic()
        return self._read("VmRSS")

    def _is_back(self, sizes):
        return all(size <= before + MUCH_MB for size, before in zip(sizes, self.before, strict=True))

    def _read(self, field):
        sizes = []
        for pid in self.pids:
            with open(f"/proc/{pid}/status") as status:
                fields = dict(line.split(":", 1) for line in status)
            sizes.append(int(fields[field].split()[0]) // 1024)
        return sizes

    def _loaded(self):
        for pid in self.pids:
            with open(f"/proc/{pid}/maps") as maps:
                yield "yes" if "libflarena.so" in maps.read() else "no"
