"""Runs one program under one contender and samples its memory, CPU time and wall time."""

import contextlib
import ctypes
import json
import os
import resource
import signal
import subprocess
import time
from dataclasses import dataclass

from model import Failed

PAGE = os.sysconf("SC_PAGE_SIZE")
SAMPLE_S = 0.02
PR_SET_CHILD_SUBREAPER = 36
MB = 1 << 20


@dataclass
class Run:
    """One run: the values that the program printed as its last line of JSON, and the measured ones."""

    reported: dict
    peak_bytes: int  # the larger of the sampled RSS and the program's VmHWM
    mean_bytes: float
    cpu_s: float
    faults: int
    wall_s: float
    output: str


class Sampler:
    """Samples the RSS of one process and checks that the contender's library is mapped."""

    def __init__(self, pid, library):
        self.pid, self.library = pid, library
        self.peak_bytes = self.sum = self.count = 0
        self.library_seen = not library

    def sample(self):
        try:
            with open(f"/proc/{self.pid}/statm") as statm:
                rss = int(statm.read().split()[1]) * PAGE
            if not self.library_seen:
                self.library_seen = self.is_mapped()
        except (OSError, IndexError):
            return  # the process has ended
        self.peak_bytes = max(self.peak_bytes, rss)
        self.sum += rss
        self.count += 1

    def is_mapped(self):
        with open(f"/proc/{self.pid}/maps") as maps:
            return os.path.realpath(self.library) in maps.read()


def adopt_orphans():
    """Makes this process the parent of orphaned descendants, so that their CPU time is counted."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children_cpu_s():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def children_faults():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_minflt + usage.ru_majflt


def reap_all():
    """Reaps all children that have ended, adopted ones too."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return


def run(contender, command, extra=None, timeout_s=600, sampler=None):
    """Runs `command` under `contender`. Raises Failed when it fails or the contender's library is not mapped."""
    environment = contender.environment()
    environment.update(extra or {})
    cpu_before, faults_before, start = children_cpu_s(), children_faults(), time.monotonic()
    child = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    sampler = (sampler or Sampler)(child.pid, contender.library_path())
    try:
        output, errors = drain(child, sampler, start + timeout_s)
    finally:
        end_all()
        child.wait()
    wall_s = time.monotonic() - start
    reap_all()
    if child.returncode != 0:
        raise Failed(f"{reason(child.returncode)}; {last_line(errors) or last_line(output)}")
    if not sampler.library_seen and wall_s > 10 * SAMPLE_S:
        raise Failed(f"{contender.library} was not mapped in the process: the result is not valid")
    reported = last_json(output)
    peak = max(sampler.peak_bytes, reported.get("hwm_bytes", 0))
    mean = sampler.sum / sampler.count if sampler.count else 0
    cpu_s, faults = children_cpu_s() - cpu_before, children_faults() - faults_before
    return Run(reported, peak, mean, cpu_s, faults, wall_s, output)


def drain(child, sampler, deadline):
    """Samples until the child ends. After the deadline it and all its descendants are killed."""
    while child.poll() is None:
        sampler.sample()
        try:
            return child.communicate(timeout=SAMPLE_S)
        except subprocess.TimeoutExpired:
            pass
        if time.monotonic() > deadline:
            end_all()
    end_all()  # processes of a program that was killed hold its pipes open
    return child.communicate()


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


def end_all():
    """Kills all descendants, also those in other sessions."""
    for pid in descendants(os.getpid()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def reason(status):
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""


def last_json(output):
    lines = [line for line in output.splitlines() if line.startswith("{")]
    try:
        return json.loads(lines[-1])
    except (IndexError, ValueError):
        return {}
