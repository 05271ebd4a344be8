"""micro. Cost of the library itself: a malloc/free pair and the start of a process."""

import os

import build
import fl_rounds
import measure
from model import Column, Variant

TITLE = "Cost of the library itself"
REFERENCES = {"flarena-glibc": "glibc", "flarena-jemalloc": "jemalloc-plain"}
LAYERS = ("glibc", "flarena-glibc", "jemalloc-plain", "flarena-jemalloc")
PRELOADS = (
    "jemalloc-plain",
    "jemalloc",
    "mimalloc",
    "mimalloc3",
    "tcmalloc",
    "tbbmalloc",
    "snmalloc",
    "flarena-glibc",
    "flarena-jemalloc",
)
PAIR = (Column("pair_ns", "ns per malloc+free", digits=2),)
START = (Column("bare_us", "bare us"), Column("preloaded_us", "preloaded us"), Column("over_bare_us", "over bare us"))
# bytes (0: mixed), number of blocks held
LOOPS = ((16, 1), (64, 1), (512, 1), (4096, 1), (32768, 1), (64, 100), (0, 100))


def variants(options):
    repeats = options.repeats(3, 7)
    yield from pairs(options.numbers("threads") or (1, os.cpu_count() or 1), repeats)
    yield Variant("start-true", "Start of /bin/true", START, start_of(["/bin/true"]), repeats, PRELOADS)
    run = start_of([fl_rounds.PYTHON, "-c", "pass"], runs=50)
    yield Variant("start-python", "Start of python3 -c pass", START, run, repeats, PRELOADS)


def pairs(thread_counts, repeats):
    for threads in thread_counts:
        for size, depth in LOOPS:
            what = f"{size} bytes" if size else "16-1024 bytes"
            title = f"malloc/free of {what}, {depth} held, {threads} thread{'s'[: threads - 1]}"
            run = pair_of(["--size", str(size), "--depth", str(depth), "--threads", str(threads)])
            yield Variant(f"pair-{size}-{depth}-{threads}", title, PAIR, run, repeats, LAYERS, REFERENCES)


def pair_of(arguments):
    def run(contender):
        return measure.run(contender, [build.program("malloc_free"), *arguments]).reported

    return run


def start_of(command, runs=200):
    """The program sets LD_PRELOAD itself, so that bare and preloaded starts alternate."""

    def run(contender):
        environment = contender.environment()
        launcher = type(contender)(contender.name, contender.title, settings=contender.settings)
        extra = {"BENCH_PRELOAD": environment["LD_PRELOAD"]}
        return measure.run(launcher, [build.program("startup"), "--runs", str(runs), "--", *command], extra).reported

    return run
