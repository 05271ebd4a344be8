"""e. Churn of large blocks: operations per second, peak and idle RSS."""

import build
import measure
from model import Column, Failed, Variant

TITLE = "Churn of large blocks"
COLUMNS = (
    Column("ops_per_s", "thousand ops/s", "more", digits=1),
    Column("peak_mb", "peak MB"),
    Column("idle_mb", "idle MB"),
    Column("cpu_us", "CPU us/op", digits=2),
    Column("faults_k", "thousand faults"),
)
KB, MB = 1 << 10, 1 << 20
# name, title, min, max, log, touch, handoff: the arguments of bench/churn.c
PATTERNS = (
    ("touched", "1-8 MiB, touched", MB, 8 * MB, 0, 1, 0),
    ("handoff", "1-8 MiB, touched, freed by another thread", MB, 8 * MB, 0, 1, 1),
    ("untouched", "1-8 MiB, untouched", MB, 8 * MB, 0, 0, 0),
    ("wide", "64 KiB-64 MiB, touched", 64 * KB, 64 * MB, 1, 1, 0),
    ("wide-handoff", "64 KiB-64 MiB, touched, freed by another thread", 64 * KB, 64 * MB, 1, 1, 1),
)


def variants(options):
    seconds = 1.0 if options.quick else 2.0
    threads = options.numbers("threads") or ((1, 2) if options.quick else (1, 2, 16, 64))
    wanted = options.names("pattern") or ([PATTERNS[0][0]] if options.quick else [p[0] for p in PATTERNS])
    for name, title, low, high, log, touch, handoff in PATTERNS:
        if name not in wanted:
            continue
        for count in threads:
            arguments = dict(threads=count, min=low, max=high, log=log, touch=touch, handoff=handoff, live=4)
            yield Variant(
                f"{name}-{count}",
                f"{title}, {count} thread{'s'[: count - 1]}",
                COLUMNS,
                run_of(arguments, seconds),
                repeats=options.repeats(2, 5),
            )


def run_of(arguments, seconds):
    def run(contender):
        command = [build.program("churn"), "--seconds", str(seconds), "--warmup", "0.5", "--idle", "1.5"]
        for name, value in arguments.items():
            command += ["--" + name, str(value)]
        return values(measure.run(contender, command))

    return run


def values(done):
    """The values of the columns."""
    if not done.reported["operations"]:
        raise Failed("no operation in the measured time")
    rate = done.reported["ops_per_s"]
    return {
        "ops_per_s": rate / 1000,
        "peak_mb": done.peak_bytes / measure.MB,
        "idle_mb": done.reported["idle_bytes"] / measure.MB,
        "cpu_us": done.reported["cpu_s"] / done.reported["operations"] * 1e6,
        "faults_k": done.faults / 1000,
    }
