"""The comparison: which workloads, which contenders, in which order. `scripts/bench.sh --help` is its manual."""

import argparse
import os
import signal
import subprocess
import sys

import churn
import contenders
import fl_rounds
import hibernation
import large_model
import largest
import machine
import measure
import micro
import nvflare_job
import peers
import results
import scale
import stress
import table
import torch_rounds
from model import Failed
from places import BUILD

WORKLOADS = {
    "a": fl_rounds,
    "b": torch_rounds,
    "c": nvflare_job,
    "d": largest,
    "e": churn,
    "f": stress,
    "g": scale,
    "h": large_model,
    "i": hibernation,
    "micro": micro,
}


class Options(argparse.Namespace):
    """The command line, with the two questions workloads ask of it."""

    def names(self, key):
        value = getattr(self, key)
        return [part for part in value.split(",") if part] if value else []

    def numbers(self, key):
        return tuple(int(part) for part in self.names(key))

    def repeats(self, quick, full):
        return self.repeat or (quick if self.quick else full)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="scripts/bench.sh", description="flarena against its peers, interleaved.")
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=workload_help())
    parser.add_argument("--quick", action="store_true", help="smaller, fewer and shorter runs: a first look")
    parser.add_argument("--only", metavar="NAME,NAME", help="contenders: " + ", ".join(contenders.BY_NAME))
    parser.add_argument("--repeat", type=int, help="interleaved runs of each contender (default: by workload)")
    parser.add_argument("--report", action="store_true", help="measure nothing: tables and chart from the kept results")
    for workload in WORKLOADS.values():
        workload.add_arguments(parser)
    return parser.parse_intermixed_args(arguments, namespace=Options())


def workload_help():
    return "; ".join(f"{name}: {module.TITLE}" for name, module in WORKLOADS.items()) + " (default: all)"


def interleave(variant, field, progress):
    """Each contender once, then each again: what the machine does meanwhile hits all of them alike."""
    rounds = []
    for turn in range(variant.repeats):
        row = {}
        for contender in field[turn % len(field) :] + field[: turn % len(field)]:
            progress(f"{variant.title}: {contender.name}, run {turn + 1} of {variant.repeats}")
            try:
                row[contender.name] = variant.run(contender)
            except Failed as failure:
                row[contender.name] = {"failed": str(failure)}
        rounds.append(row)
    return rounds


def present(field, said):
    """The contenders that this machine can run, built if need be; says once why it cannot run the others."""
    for contender in field:
        if contender.crate and contender.name not in said:
            progress(f"building {contender.title}")
            make(contender)
    missing = [c for c in field if c.obstacle()]
    for contender in missing:
        if contender.name not in said:
            print(f"bench: {contender.title}: {contender.obstacle()}, left out", file=sys.stderr)
    said.update(c.name for c in missing)
    return [c for c in field if c not in missing]


def make(contender):
    try:
        peers.build(contender.crate)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"bench: {contender.title} could not be built: {error}", file=sys.stderr)


def progress(line):
    if sys.stderr.isatty():
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)


def compare(name, options):
    for variant in WORKLOADS[name].variants(options):
        names = options.names("only") or list(variant.only)
        if variant.only:
            names = [n for n in names if n in variant.only]
            if not names:
                continue  # no name at all would mean everybody
        field = present(contenders.select(names), options.missing)
        if not field:
            continue
        result = results.of(name, WORKLOADS[name].TITLE, variant, field, interleave(variant, field, progress))
        progress("")
        results.write(result, complete=not options.only)
        print(table.markdown(result), flush=True)


def main():
    options = parse(sys.argv[1:])
    options.missing = set()
    unknown = [name for name in options.workloads if name not in WORKLOADS]
    if unknown:
        raise SystemExit(f"bench: no workload {unknown[0]!r}; known: {', '.join(WORKLOADS)}")
    os.makedirs(BUILD, exist_ok=True)
    measure.adopt_orphans()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # unwinds, so that no benchmark is left running
    if not options.report:
        print(machine.sentence(), end="\n\n")
        for name in options.workloads or WORKLOADS:
            compare(name, options)
    results.report(options.workloads)


if __name__ == "__main__":
    main()
