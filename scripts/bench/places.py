"""Paths of the benchmark."""

import os

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build", "bench")


def is_older(result, sources):
    return not os.path.exists(result) or os.path.getmtime(result) < max(os.path.getmtime(s) for s in sources)
