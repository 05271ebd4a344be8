"""Builds the C programs of bench/ and Python environments."""

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


def python(*arguments):
    """An interpreter of the environment that scripts/venv.sh makes for these arguments."""
    command = [os.path.join(ROOT, "scripts", "venv.sh"), *arguments]
    venv = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    return os.path.join(venv, "bin", "python")


def python_with_joblib():
    return python("joblib-1.5.2", "joblib==1.5.2", "numpy")
