"""measure.py FOLDER STAGES LIMIT_S COMMAND...: runs a job, shows its progress, writes FOLDER/measures.json.

Four times a second it sums the PSS of all processes of the job; PSS counts shared pages once. This process is the
parent of the job's orphans, so their memory and CPU time are included. A job that takes longer than LIMIT_S is killed
with all its processes, and the exit status is 124.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import time

from family import adopt, descendants, kill

INTERVAL_S = 0.25
GRACE_S = 15
BAR_CELLS = 24


def main(folder, stages, limit_s, *command):
    adopt()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    started = time.monotonic()
    with open(os.path.join(folder, "job.log"), "wb") as log:
        job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        pss = watch(job, Progress(os.path.join(folder, "stages.jsonl"), int(stages)), started + float(limit_s))
    except TimeoutError:
        sys.exit(124)
    finally:
        end(descendants())
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    measures = {
        "peak_pss_bytes": pss.peak,
        "mean_pss_bytes": pss.mean(),
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "wall_s": time.monotonic() - started,
        "pss": pss.samples,
    }
    with open(os.path.join(folder, "measures.json"), "w") as file:
        json.dump(measures, file)
    sys.exit(1 if job.returncode else 0)


def watch(job, progress, latest):
    """Samples until the job and all its processes have ended, or until GRACE_S after the job."""
    pss, deadline = Pss(), None
    while True:
        pids = descendants()
        if job.poll() is not None:
            deadline = deadline or time.monotonic() + GRACE_S
            if not pids or time.monotonic() > deadline:
                progress.end()
                return pss
        elif time.monotonic() > latest:
            progress.end()
            raise TimeoutError
        pss.add(sum(map(pss_bytes, pids)))
        progress.show(pss.last)
        reap(pids, job.pid)
        time.sleep(INTERVAL_S)


class Pss:
    """The peak, and the mean weighted by time: on a busy machine the intervals differ."""

    def __init__(self):
        self.last = self.peak = self.area = 0
        self.begun = self.at = time.monotonic()
        self.samples = []  # (seconds since the start, bytes), for the picture

    def add(self, size):
        now = time.monotonic()
        self.area += (self.last + size) / 2 * (now - self.at)
        self.last, self.at, self.peak = size, now, max(self.peak, size)
        self.samples.append((round(now - self.begun, 2), size))

    def mean(self):
        return self.area / max(self.at - self.begun, 1e-9)


def pss_bytes(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup") as rollup:
            return next((int(line.split()[1]) * 1024 for line in rollup if line.startswith("Pss:")), 0)
    except OSError:
        return 0


def reap(pids, job_pid):
    """Waits for ended orphans. Popen waits for the job itself."""
    for pid in pids:
        if pid != job_pid:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass  # it has another parent


def end(pids):
    kill(pids)
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        pass


class Progress:
    """A bar on a terminal; in a log, one line for each round."""

    def __init__(self, path, stages):
        self.path, self.stages = path, stages
        self.live = sys.stderr.isatty()
        self.started, self.printed = time.monotonic(), None

    def show(self, pss):
        done, round_number = self.done()
        if self.live:
            filled = BAR_CELLS * done // self.stages
            bar = "█" * filled + "░" * (BAR_CELLS - filled)
            seconds = time.monotonic() - self.started
            sys.stderr.write(f"\r    {bar}  {self.text(round_number):<10}{pss / 2**20:6,.0f} MB {seconds:5.0f} s ")
            sys.stderr.flush()
        elif round_number != self.printed:
            self.printed = round_number
            sys.stderr.write(f"    {self.text(round_number)}\n")

    def text(self, round_number):
        return "starting" if round_number is None else f"round {round_number}"

    def done(self):
        try:
            with open(self.path) as lines:
                notes = lines.readlines()
            return min(len(notes), self.stages), json.loads(notes[-1])["round"]
        except (OSError, ValueError, IndexError):
            return 0, None

    def end(self):
        if self.live:
            sys.stderr.write("\r\033[K")


main(*sys.argv[1:])
