"""Builds what is measured with: the C programs of bench/ and the bare jemalloc preload."""

import glob
import os
import subprocess

from contenders import BUILD, PLAIN_JEMALLOC, ROOT

SOURCES = os.path.join(ROOT, "bench")
FLAGS = "-std=gnu11 -O2 -g -Wall -Wextra -Wno-unused-function -fno-builtin-malloc -pthread".split()


def program(name):
    """The path of a built C program of bench/, built when its source or a header is newer."""
    source, binary = os.path.join(SOURCES, name + ".c"), os.path.join(BUILD, "bin", name)
    headers = [os.path.join(SOURCES, f) for f in os.listdir(SOURCES) if f.endswith(".h")]
    if is_older(binary, [source, *headers]):
        os.makedirs(os.path.dirname(binary), exist_ok=True)
        subprocess.run(["cc", *FLAGS, "-o", binary, source, "-ldl", "-lm"], check=True)
    return binary


def plain_jemalloc():
    """Builds the jemalloc that is inside libflarena.so as a preload of its own, without our layer."""
    crate = os.path.join(SOURCES, "jemalloc")
    if is_older(PLAIN_JEMALLOC, [os.path.join(crate, "Cargo.toml")]):
        target = os.path.dirname(os.path.dirname(PLAIN_JEMALLOC))
        subprocess.run(["cargo", "build", "--release", "--target-dir", target], cwd=crate, check=True)
        archives = glob.glob(os.path.join(target, "release", "build", "*", "out", "lib", "libjemalloc_pic.a"))
        whole = ["-Wl,--whole-archive", max(archives, key=os.path.getmtime), "-Wl,--no-whole-archive"]
        subprocess.run(["cc", "-shared", "-o", PLAIN_JEMALLOC, *whole, "-pthread", "-ldl", "-lm"], check=True)
    return PLAIN_JEMALLOC


def is_older(result, sources):
    return not os.path.exists(result) or os.path.getmtime(result) < max(os.path.getmtime(s) for s in sources)
