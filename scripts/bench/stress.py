"""f. Stress patterns of public allocator suites: large blocks, server, hand-off, growth."""

import build
import measure
from churn import NO_GOALS, rate_values
from model import Variant

TITLE = "Allocator stress patterns"
# name, title, program, arguments
PATTERNS = (
    ("large", "5-25 MiB, 20 held, 1 thread", "large", {}),
    ("server-2", "server with dying threads, 8-1000 bytes, 2 threads", "server", {"threads": 2}),
    ("server-16", "server with dying threads, 8-1000 bytes, 16 threads", "server", {"threads": 16}),
    ("handoff-small", "producer/consumer, 16-1024 bytes, 1 pair", "handoff", {"pairs": 1, "batch": 32}),
    ("handoff-large", "producer/consumer, 1-4 MiB, 1 pair", "handoff", {"pairs": 1, "min": 1 << 20, "max": 4 << 20}),
    ("handoff-8", "producer/consumer, 16-1024 bytes, 8 pairs", "handoff", {"pairs": 8, "batch": 32}),
    ("growth-1", "realloc growth to 64 MiB, 1 thread", "growth", {"threads": 1}),
    ("growth-16", "realloc growth to 64 MiB, 16 threads", "growth", {"threads": 16, "live": 2}),
)


def add_arguments(group):
    group.add_argument("--stress", metavar="NAME,NAME", help="f: " + ", ".join(p[0] for p in PATTERNS))


def variants(options):
    seconds = options.seconds or (1.0 if options.quick else 2.0)
    for name, title, program, arguments in PATTERNS:
        if name in (options.names("stress") or [p[0] for p in PATTERNS]):
            yield Variant(name, title, NO_GOALS, run_of(program, arguments, seconds), options.repeats(1, 5))


def run_of(program, arguments, seconds):
    def run(contender):
        command = [build.program(program), "--seconds", str(seconds), "--warmup", "0.5", "--idle", "1.5"]
        for name, value in arguments.items():
            command += ["--" + name, str(value)]
        return rate_values(measure.run(contender, command))

    return run
