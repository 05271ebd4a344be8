"""Stores each result as a JSON file, and writes build/bench/results.md from all of them."""

import dataclasses
import json
import os
import time

import machine
import table
from places import BUILD

COMPLETE = os.path.join(BUILD, "results")
PARTIAL = os.path.join(BUILD, "partial")  # results of --only
PAGE = os.path.join(BUILD, "results.md")


def of(workload, workload_title, variant, group, rounds):
    return {
        "workload": workload,
        "workload_title": workload_title,
        "variant": variant.name,
        "title": variant.title,
        "columns": [dataclasses.asdict(column) for column in variant.columns],
        "references": variant.references,
        "contenders": [{"name": c.name, "title": c.title, "ours": c.is_flarena} for c in group],
        "rounds": rounds,
        "machine": machine.facts(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def write(result, complete):
    """Stores a result and renews the page, so that a run that is stopped leaves the tables of what it measured."""
    directory = COMPLETE if complete else PARTIAL
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, f"{result['workload']}-{result['variant']}.json"), "w") as file:
        json.dump(result, file, indent=1)
    write_page()


def stored(directory):
    """The results of a directory by workload, in the order of their measurement."""
    found = []
    for name in os.listdir(directory) if os.path.isdir(directory) else ():
        with open(os.path.join(directory, name)) as file:
            found.append(json.load(file))
    return sorted(found, key=lambda result: (result["workload"], result["time"]))


def write_page():
    """Writes build/bench/results.md: the tables of all stored results, under the machine that they were measured on."""
    complete, partial = stored(COMPLETE), stored(PARTIAL)
    parts = ["# Benchmark results\n\n", table.LEGEND, "\n", *sections(complete)]
    if partial:
        parts += ["# Partial comparisons (`--only`)\n\n", *sections(partial)]
    with open(PAGE, "w") as file:
        file.write("".join(parts))


def sections(results):
    """Tables in order, with the machine's description where it differs from that of the table before."""
    described = None
    for result in results:
        sentence = machine.sentence(result["machine"])
        if sentence != described:
            described = sentence
            yield f"{sentence}\n\n"
        yield table.markdown(result) + "\n"
