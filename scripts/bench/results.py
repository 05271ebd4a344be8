"""Results on disk: one JSON file per variant, so that tables and the chart can be made again from pieces."""

import dataclasses
import json
import os
import time

import chart
import large_model
import machine
import scale
import table
from places import BUILD

COMPLETE = os.path.join(BUILD, "results")
PARTIAL = os.path.join(BUILD, "partial")  # --only: never mistaken for the whole comparison


def of(workload, workload_title, variant, field, rounds):
    return {
        "workload": workload,
        "workload_title": workload_title,
        "variant": variant.name,
        "title": variant.title,
        "columns": [dataclasses.asdict(column) for column in variant.columns],
        "references": variant.references,
        "contenders": [{"name": c.name, "title": c.title, "ours": c.ours} for c in field],
        "rounds": rounds,
        "machine": machine.facts(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def write(result, complete):
    directory = COMPLETE if complete else PARTIAL
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, f"{result['workload']}-{result['variant']}.json"), "w") as file:
        json.dump(result, file, indent=1)


def kept(workloads):
    """The complete results, in the order they were measured in."""
    found = []
    for name in os.listdir(COMPLETE) if os.path.isdir(COMPLETE) else ():
        with open(os.path.join(COMPLETE, name)) as file:
            found.append(json.load(file))
    chosen = [r for r in found if not workloads or r["workload"] in workloads]
    return sorted(chosen, key=lambda r: (r["workload"], r["time"]))


def report(workloads):
    """Writes build/bench/tables.md and build/bench/chart.svg from what is kept."""
    chosen = kept(workloads)
    if not chosen:
        return
    with open(os.path.join(BUILD, "tables.md"), "w") as file:
        file.write("\n".join(table.markdown(result) for result in chosen))
    with open(os.path.join(BUILD, "chart.svg"), "w") as file:
        file.write(chart.svg(chosen))
    scale.report(chosen)
    large_model.report(chosen)
    print("Tables: build/bench/tables.md, chart: build/bench/chart.svg, raw results: build/bench/results/")
