#!/usr/bin/env python3
"""Measures how much an installed wheel slows down the start of a Python that does not use it.

    python_start.py [WHEEL]     default: the wheel in build/dist

`python -c pass` starts alternately without the wheel, with it, and with it and markers on, never preloaded.
Prints medians.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

STARTS = 300
ROOT = Path(__file__).resolve().parents[2]


def environment(folder: Path, wheel: Path | None) -> Path:
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    if wheel:
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", wheel], check=True)
    return python


def start_ms(python: Path, settings: dict[str, str]) -> float:
    before = time.perf_counter()
    subprocess.run([python, "-c", "pass"], env=settings, check=True)
    return (time.perf_counter() - before) * 1000


def main() -> None:
    wheels = [Path(name) for name in sys.argv[1:]] or sorted((ROOT / "build" / "dist").glob("flarena-*.whl"))
    if not wheels:
        sys.exit("python_start.py: no wheel in build/dist: run scripts/build-wheel.sh first")
    quiet = {"PATH": os.environ["PATH"]}
    with tempfile.TemporaryDirectory() as scratch:
        bare = environment(Path(scratch, "bare"), None)
        with_wheel = environment(Path(scratch, "wheel"), wheels[-1])
        contenders = {
            "without the wheel": (bare, quiet),
            "with the wheel": (with_wheel, quiet),
            "with the wheel, markers on": (with_wheel, {**quiet, "NVFLARE_CLIENT_MEMORY_PROFILE": "1"}),
        }
        times: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in range(STARTS):
            for name, (python, settings) in contenders.items():
                times[name].append(start_ms(python, settings))
    base = statistics.median(times["without the wheel"])
    for name, values in times.items():
        median = statistics.median(values)
        print(f"{name:28} {median:7.2f} ms  {median - base:+6.2f} ms")


if __name__ == "__main__":
    main()
