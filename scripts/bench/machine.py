"""Describes the machine of a measurement."""

import os
import platform
import subprocess

import cgroup
from cgroup import read
from places import ROOT


def facts():
    return {
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30), 1),
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()),
        "thp": chosen("/sys/kernel/mm/transparent_hugepage/enabled"),
        "cgroup": cgroup.version() or "none",
        "commit": version(),
    }


def sentence(f):
    """`facts()` as one line."""
    return (
        f"Machine: {f['cores']} cores of {f['cpu']}, {f['memory_gib']} GiB, Linux {f['kernel']}, {f['libc']}, "
        f"transparent huge pages {f['thp']}, memory cgroup {f['cgroup']}; flarena {f['commit']}."
    )


def cpu_model():
    for line in read("/proc/cpuinfo").splitlines():
        if line.startswith(("model name", "CPU part")):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def chosen(path):
    """The selected word of a kernel switch such as `always [madvise] never`."""
    text = read(path)
    return text[text.find("[") + 1 : text.find("]")] if "[" in text else "unknown"


def version():
    git = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return git.stdout.strip() or "unknown"
