"""Compares the NumPy rows of README.md and docs/results.md with docs/numpy.json, the one measurement behind both.

After a new measurement: `figures.py build/bench/results` (or .../partial) writes docs/numpy.json from the stored
results of workload a. The rows are then changed by hand, until this check is silent.
"""

import json
import os
import re
import statistics
import sys

DATA = "docs/numpy.json"
WORKLOAD = "scripts/bench.sh a, medians of {} interleaved runs"
MODELS = {
    "64x8MB": ("peak_mb", "idle_mb", "cpu_s", "round_s", "faults_k"),
    "mix-512MB": ("peak_mb", "cpu_s", "faults_k"),
}
RESULTS = {
    "glibc": "glibc",
    "glibc, 2 arenas, trim each round": "glibc-trim",
    "glibc, fixed thresholds": "glibc-fixed",
    "gperftools tcmalloc": "tcmalloc",
    "tbbmalloc": "tbbmalloc",
    "flarena, glibc / jemalloc mode": "flarena-glibc flarena-jemalloc",
}
README = ("glibc", "glibc-trim", "jemalloc", "flarena-glibc", "flarena-jemalloc")
README_ROWS = {
    "idle_mb": "NumPy trainer, 512 MB model: memory while it waits, MB",
    "cpu_s": "NumPy trainer: CPU time, s",
}


def text(contenders, key):
    """The cell of these contenders: `1123 / 1133`, or `-` where they were not measured."""
    digits = 2 if key.endswith("_s") else 0
    values = [contender.get(key) for contender in contenders]
    return " / ".join("-" if value is None else f"{value:.{digits}f}" for value in values)


def expected(data):
    """The cells of each row, without the marks of the best."""
    first, mixed = (data[model] for model in MODELS)
    for title, names in RESULTS.items():
        pairs = [(model, key) for model, keys in zip((first, mixed), MODELS.values()) for key in keys]
        cells = [text([model.get(name, {}) for name in names.split()], key) for model, key in pairs]
        yield "docs/results.md", title, cells
    for key, title in README_ROWS.items():
        yield "README.md", title, [text([first.get(name, {})], key) for name in README]


def rows(path):
    with open(path, encoding="utf-8") as file:
        page = file.read()
    # Other tables of the page have rows with the same titles.
    page = page.split("**NumPy rounds** (`a`)")[-1].split("\n**")[0] if path.startswith("docs/") else page
    for line in re.findall(r"^\|(.*)\|$", page, re.MULTILINE):
        title, *cells = (cell.strip().replace("**", "") for cell in line.split("|"))
        yield title, cells


def differences():
    with open(DATA, encoding="utf-8") as file:
        data = json.load(file)
    for path, title, cells in expected(data):
        found = dict(rows(path)).get(title)
        if found != cells:
            yield f"{path}: {title}: {found} is not {cells} of {DATA}"


def medians(runs, name, keys):
    return {key: round(statistics.median(run[name][key] for run in runs), 2) for key in keys}


def write(folder):
    data = {}
    for model, keys in MODELS.items():
        with open(os.path.join(folder, f"a-{model}.json"), encoding="utf-8") as file:
            runs = json.load(file)["rounds"]
        data["workload"] = WORKLOAD.format(len(runs))
        data[model] = {name: medians(runs, name, keys) for name in runs[0]}
    with open(DATA, "w", encoding="utf-8") as file:
        json.dump(data, file, indent=1)


if len(sys.argv) > 1:
    write(sys.argv[1])
else:
    sys.exit("\n".join(differences()) or None)
