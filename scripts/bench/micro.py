"""micro. Cost of the library itself: a malloc/free pair, the start of a process, a marker, an allocation site."""

import os

import build
import fl_rounds
import measure
from model import Column, Failed, Variant
from places import BUILD

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
FLARENA = ("flarena-glibc", "flarena-jemalloc")
SITES = {"flarena-glibc-sites": "flarena-glibc", "flarena-jemalloc-sites": "flarena-jemalloc"}
PAIR = (Column("pair_ns", "ns per malloc+free", goal=1.02, digits=2),)
START = (
    Column("bare_us", "bare us"),
    Column("preloaded_us", "preloaded us"),
    Column("over_bare_us", "over bare us", limit=400.0),
)
# bytes (0: mixed), number of blocks held
LOOPS = ((16, 1), (64, 1), (512, 1), (4096, 1), (32768, 1), (64, 100), (0, 100))
MARKERS = (
    ("mark-on", "One marker with statistics, to a file", 1, 100_000.0),
    ("mark-off", "One marker, markers off", 0, 5.0),
)


def add_arguments(group):
    group.add_argument("--micro", metavar="pair,start,mark,sites", help="micro: only these parts")


def variants(options):
    parts = options.names("micro") or ["pair", "start", "mark", "sites"]
    repeats = options.repeats(3, 7)
    if "pair" in parts:
        yield from pairs(options.numbers("threads") or (1, os.cpu_count() or 1), repeats)
    if "start" in parts:
        yield Variant("start-true", "Start of /bin/true", START, start_of(["/bin/true"]), repeats, PRELOADS)
        yield Variant(
            "start-python",
            "Start of python3 -c pass",
            START[:2] + (Column("over_bare_us", "over bare us"),),
            start_of([fl_rounds.PYTHON, "-c", "pass"], runs=50),
            repeats,
            PRELOADS,
        )
    if "mark" in parts:
        for name, title, on, limit_ns in MARKERS:
            columns = (Column("mark_ns", "ns", limit=limit_ns, digits=1),)
            yield Variant(name, title, columns, mark_of(on), repeats, FLARENA)
    if "sites" in parts:
        columns = (Column("pair_ns", "ns per np.empty and free"),)
        title = "A block of 8 MB in Python, sites off and on"
        yield Variant("sites", title, columns, large_pair, repeats, (*FLARENA, *SITES), SITES)


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


def large_pair(contender):
    program = os.path.join(build.SOURCES, "large_pair.py")
    return measure.run(contender, [fl_rounds.PYTHON, program, "--pairs", "5000"]).reported


def start_of(command, runs=200):
    """The program sets LD_PRELOAD itself, so that bare and preloaded starts alternate."""

    def run(contender):
        environment = contender.environment()
        launcher = type(contender)(contender.name, contender.title, settings=contender.settings)
        extra = {"BENCH_PRELOAD": environment["LD_PRELOAD"]}
        return measure.run(launcher, [build.program("startup"), "--runs", str(runs), "--", *command], extra).reported

    return run


def mark_of(on):
    def run(contender):
        marker_file = os.path.join(BUILD, "markers.jsonl")
        extra = {"NVFLARE_CLIENT_MEMORY_PROFILE": str(on), "FLARENA_MARKER_FILE": marker_file}
        try:
            done = measure.run(
                contender, [build.program("mark"), "--on", str(on), "--marks", "2000" if on else "10000000"], extra
            )
            if on and not os.path.exists(marker_file):
                raise Failed("markers are on, but no marker file was written")
        finally:
            if os.path.exists(marker_file):
                os.remove(marker_file)
        return done.reported

    return run
