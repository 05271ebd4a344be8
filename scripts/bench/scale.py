"""g. Scale: cost of calls in a process with many live blocks that were never written, and with many threads."""

import contextlib
import os

import build
import measure
import scale_plot
from model import Column, Failed, Variant
from places import BUILD
from switches import switched

TITLE = "Scale: many live blocks, many threads"
BLOCK = 80 << 20  # 100,000 blocks take 8 TB of addresses
COUNTS = (100, 1000, 10000, 100000)
THREADS = (64, 256, 1024)
MOST_BYTES = 4 << 30  # a run above this RSS is ended, to protect the machine
OVERCOMMIT = "/proc/sys/vm/overcommit_memory"
CALLS = (
    Column("malloc_us", "malloc us", digits=2),
    Column("free_us", "free us", digits=2),
    Column("trim_us", "trim us", digits=1),
    Column("mark_us", "marker us", digits=1),
    Column("fork_us", "fork us"),
    Column("bytes_each", "bytes a block"),
)
SHARED = (
    Column("hold_us", "us a malloc", digits=2),
    Column("release_us", "us a free", digits=2),
    Column("peak_mb", "peak MB"),
)
CONTENDERS = ("glibc", "jemalloc-plain", "mimalloc3", "tcmalloc", "flarena-glibc", "flarena-jemalloc")


def add_arguments(group):
    group.add_argument("--blocks", metavar="N,N", help="g: live blocks (default " + ",".join(map(str, COUNTS)) + ")")


def variants(options):
    counts = options.numbers("blocks") or (COUNTS[:3] if options.quick else COUNTS)
    for count in counts:
        title = f"{count:,} live blocks of 80 MiB, untouched, 1 thread"
        yield Variant(f"blocks-{count:06}", title, CALLS, calls_of(count), options.repeats(1, 3), CONTENDERS)
    for threads in options.numbers("threads") or THREADS:
        title = f"10,240 blocks of 80 MiB, untouched, held by {threads} threads"
        yield Variant(f"threads-{threads:04}", title, SHARED, shared_of(threads), options.repeats(1, 3), CONTENDERS)


class LimitedSampler(measure.Sampler):
    def sample(self):
        super().sample()
        if self.peak_bytes > MOST_BYTES:
            raise Failed(f"more than {MOST_BYTES >> 30} GB resident for blocks that were never written")


def run_scale(contender, **arguments):
    command = [build.program("scale"), "--bytes", str(BLOCK)]
    for name, value in arguments.items():
        command += ["--" + name, str(value)]
    marker_file = os.path.join(BUILD, "markers.jsonl")
    extra = {"NVFLARE_CLIENT_MEMORY_PROFILE": "1", "FLARENA_MARKER_FILE": marker_file}
    try:
        with overcommit_allowed():
            return measure.run(contender, command, extra, sampler=LimitedSampler)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(marker_file)


def calls_of(count):
    def run(contender):
        done = run_scale(contender, blocks=count)
        return {**done.reported, "bytes_each": done.peak_bytes / count}

    return run


def shared_of(threads):
    def run(contender):
        done = run_scale(contender, blocks=10240, threads=threads)
        return {**done.reported, "peak_mb": done.peak_bytes / measure.MB}

    return run


def overcommit_allowed():
    """A fork commits all addresses again, which exceeds the machine's memory unless overcommit is allowed."""
    return switched({OVERCOMMIT: "1"} if os.access(OVERCOMMIT, os.W_OK) else {})


def report(results):
    """Writes build/bench/scale.svg: the cost of each call over the number of live blocks."""
    chosen = [result for result in results if result["variant"].startswith("blocks-")]
    if chosen:
        with open(os.path.join(BUILD, "scale.svg"), "w") as file:
            file.write(scale_plot.svg(chosen))
