"""Runs a process tree under a memory limit, in a control group of version 2 or 1."""

import contextlib
import os
import signal
import tempfile
import time

V1 = "/sys/fs/cgroup/memory"
V2 = "/sys/fs/cgroup"


def version():
    """`v2`, `v1`, or None when no memory controller is writable."""
    if "memory" in read(os.path.join(V2, "cgroup.subtree_control")).split() and os.access(V2, os.W_OK):
        return "v2"
    return "v1" if os.access(os.path.join(V1, "tasks"), os.W_OK) else None


@contextlib.contextmanager
def limited(limit_bytes):
    """Creates a group with this limit and without swap; yields a command prefix that runs a program in it."""
    kind = version()
    if not kind:
        raise OSError("no writable memory control group: run as root or in a delegated group")
    group = tempfile.mkdtemp(prefix="flarena-bench-", dir=V1 if kind == "v1" else V2)
    try:
        if kind == "v1":
            write(group, "memory.limit_in_bytes", limit_bytes)
            write(group, "memory.memsw.limit_in_bytes", limit_bytes, optional=True)
        else:
            write(group, "memory.max", limit_bytes)
            write(group, "memory.swap.max", 0, optional=True)
        yield ("sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh")
    finally:
        remove(group)


def remove(group):
    """Kills the processes that are still in the group, such as workers of a killed parent, and removes the group."""
    for _ in range(100):
        for pid in read(os.path.join(group, "cgroup.procs")).split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        try:
            return os.rmdir(group)
        except OSError:
            time.sleep(0.1)
    os.rmdir(group)


def write(group, name, value, optional=False):
    try:
        with open(os.path.join(group, name), "w") as file:
            file.write(str(value))
    except OSError:
        if not optional:
            raise


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""
