"""Builds the C programs of bench/."""

import os
import subprocess

from places import BUILD, ROOT, is_older

SOURCES = os.path.join(ROOT, "bench")
FLAGS = ["-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Wno-unused-function", "-fno-builtin-malloc", "-pthread"]


def program(name):
    """Builds a C program of bench/ if its source or a header is newer; returns the path of the binary."""
    source, binary = (os.path.join(SOURCES, name + ".c"), os.path.join(BUILD, "bin", name))
    headers = [os.path.join(SOURCES, f) for f in os.listdir(SOURCES) if f.endswith(".h")]
    if is_older(binary, [source, *headers]):
        os.makedirs(os.path.dirname(binary), exist_ok=True)
        subprocess.run(["cc", *FLAGS, "-o", binary, source, "-ldl", "-lm"], check=True)
    return binary
