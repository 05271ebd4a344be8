"""Runs the workloads of the command line for all contenders. `scripts/bench.sh --help` lists the options."""

import argparse
import os
import signal
import subprocess
import sys

import churn
import contenders
import fl_rounds
import machine
import measure
import micro
import nvflare_job
import peers
import programs
import results
import table
from model import Failed
from places import BUILD

WORKLOADS = {
    "a": fl_rounds,
    "c": nvflare_job,
    "e": churn,
    "k": programs,
    "micro": micro,
}


class Options(argparse.Namespace):
    """The command line, with helpers for lists and for the number of runs."""

    def names(self, key):
        value = getattr(self, key)
        return [part for part in value.split(",") if part] if value else []

    def numbers(self, key):
        return tuple(int(part) for part in self.names(key))

    def repeats(self, quick, full):
        return self.repeat or (quick if self.quick else full)


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="scripts/bench.sh",
        description="Compares flarena with other allocators. Results: build/bench/results.md.",
        epilog=workload_help(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help="see below (default: all)")
    parser.add_argument("--quick", action="store_true", help="fewer, smaller and shorter runs")
    parser.add_argument("--only", metavar="NAME,NAME", help="only these contenders: " + ", ".join(contenders.BY_NAME))
    parser.add_argument(
        "--repeat", type=int, metavar="N", help="runs of each contender (default: depends on the workload)"
    )
    shapes = "a, c: shapes of the model (default: several)"
    parser.add_argument("--models", metavar="COUNTxSIZEMB,..", help=shapes)
    parser.add_argument("--rounds", type=int, metavar="N", help="a, c: rounds of a run (default a: 3; c: 4)")
    threads = "e, micro: numbers of threads (default 1,2,16,64; micro: 1 and all cores)"
    parser.add_argument("--threads", metavar="N,N", help=threads)
    parser.add_argument("--pattern", metavar="NAME,NAME", help="e: " + ", ".join(p[0] for p in churn.PATTERNS))
    return parser.parse_intermixed_args(arguments, namespace=Options())


def workload_help():
    return "workloads:\n" + "\n".join(f"  {name:6} {module.TITLE}" for name, module in WORKLOADS.items())


def interleave(variant, group, progress):
    """Runs all contenders once, then all again, so that changes of the machine affect all of them."""
    rounds = []
    for index in range(variant.repeats):
        row = {}
        for contender in group[index % len(group) :] + group[: index % len(group)]:
            progress(f"{variant.title}: {contender.name}, run {index + 1} of {variant.repeats}")
            try:
                row[contender.name] = variant.run(contender)
            except Failed as failure:
                row[contender.name] = {"failed": str(failure)}
        rounds.append(row)
    return rounds


def available(group, reported):
    """Builds peers where needed and returns the contenders that can run. Reports once why others cannot."""
    for contender in group:
        if contender.crate and contender.name not in reported:
            progress(f"building {contender.title}")
            build(contender)
    missing = [c for c in group if c.obstacle()]
    for contender in missing:
        if contender.name not in reported:
            print(f"bench: {contender.title}: left out: {contender.obstacle()}", file=sys.stderr)
    reported.update(c.name for c in missing)
    return [c for c in group if c not in missing]


def build(contender):
    try:
        peers.build(contender.crate)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"bench: {contender.title} cannot be built: {error}", file=sys.stderr)


def progress(line):
    if sys.stderr.isatty():
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)


def compare(name, options):
    for variant in WORKLOADS[name].variants(options):
        names = options.names("only") or list(variant.only)
        if variant.only:
            names = [n for n in names if n in variant.only]
            if not names:
                continue  # an empty list would select the default contenders
        group = available(contenders.select(names), options.missing)
        if not group:
            continue
        result = results.of(name, WORKLOADS[name].TITLE, variant, group, interleave(variant, group, progress))
        progress("")
        results.write(result, complete=not options.only)
        print(table.markdown(result), flush=True)


def main():
    options = parse(sys.argv[1:])
    options.missing = set()
    unknown = [name for name in options.workloads if name not in WORKLOADS]
    if unknown:
        raise SystemExit(f"bench: unknown workload {unknown[0]!r}; known: {', '.join(WORKLOADS)}")
    os.makedirs(BUILD, exist_ok=True)
    measure.adopt_orphans()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # unwinds, so that running programs are ended
    print(machine.sentence(machine.facts()), end="\n\n")
    for name in options.workloads or WORKLOADS:
        compare(name, options)
    print("Tables: build/bench/results.md; raw results: build/bench/results/")


if __name__ == "__main__":
    main()
