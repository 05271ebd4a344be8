"""The contenders: who serves malloc in a run, and how a run gets there (environment only)."""

import glob
import os
from dataclasses import dataclass, field

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build", "bench")
FLARENA = os.environ.get("FLARENA_LIB") or os.path.join(ROOT, "target", "release", "libflarena.so")
HOOKS = os.path.join(ROOT, "src", "python", "flarena", "hooks")
PLAIN_JEMALLOC = os.path.join(BUILD, "jemalloc", "release", "libplain_jemalloc.so")
NVFLARE_CONF = "dirty_decay_ms:5000,muzzy_decay_ms:5000"
THRESHOLD_BYTES = str(128 * 1024)  # glibc's own starting value; setting it stops it from moving

# Anything the caller's shell sets for an allocator would silently change what is measured.
FOREIGN = ("LD_PRELOAD", "PYTHONMALLOC", "GLIBC_TUNABLES")
FOREIGN_PREFIXES = ("MALLOC_", "FLARENA_", "NVFLARE_", "MIMALLOC_", "TCMALLOC_", "_RJEM_")


@dataclass(frozen=True)
class Contender:
    name: str
    title: str
    library: str = ""  # file name or path of the preload; empty: the libc's malloc
    settings: dict = field(default_factory=dict)
    trims: bool = False  # the workload calls malloc_trim after each round
    ours: bool = False
    default: bool = True  # takes part unless a workload or the user names others

    def library_path(self):
        return find_library(self.library) if self.library else ""

    def environment(self):
        environment = {k: v for k, v in os.environ.items() if k not in FOREIGN and not k.startswith(FOREIGN_PREFIXES)}
        environment.update(self.settings)
        if self.library:
            environment["LD_PRELOAD"] = self.library_path()
        if self.ours:  # as `flarena run` starts it
            paths = [HOOKS, environment.get("PYTHONPATH")]
            environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
        if self.trims:
            environment["BENCH_TRIM"] = "1"
        return environment


def find_library(name):
    """The path of a library by file name, in the places of any architecture; None when it is missing."""
    if os.path.isabs(name):
        return name if os.path.exists(name) else None
    for pattern in ("/usr/local/lib", "/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib"):
        for path in sorted(glob.glob(os.path.join(pattern, name))):
            return path
    return None


ALL = (
    Contender("glibc", "glibc"),
    Contender("glibc-trim", "glibc, 2 arenas, trim each round", settings={"MALLOC_ARENA_MAX": "2"}, trims=True),
    Contender(
        "glibc-fixed",
        "glibc, fixed thresholds",
        settings={"MALLOC_MMAP_THRESHOLD_": THRESHOLD_BYTES, "MALLOC_TRIM_THRESHOLD_": THRESHOLD_BYTES},
    ),
    Contender("jemalloc", "jemalloc, NVFlare's options", "libjemalloc.so.2", {"MALLOC_CONF": NVFLARE_CONF}),
    Contender(
        "jemalloc-bg",
        "jemalloc, + background_thread",
        "libjemalloc.so.2",
        {"MALLOC_CONF": NVFLARE_CONF + ",background_thread:true"},
    ),
    Contender("mimalloc", "mimalloc", "libmimalloc.so.2"),
    Contender("tcmalloc", "gperftools tcmalloc", "libtcmalloc_minimal.so.4"),
    Contender("flarena-glibc", "flarena, glibc mode", FLARENA, {"FLARENA_ALLOCATOR": "glibc"}, ours=True),
    Contender("flarena-jemalloc", "flarena, jemalloc mode", FLARENA, {"FLARENA_ALLOCATOR": "jemalloc"}, ours=True),
    # What collecting garbage by bytes costs and yields.
    Contender(
        "flarena-glibc-no-gc",
        "flarena, glibc mode, FLARENA_GC=off",
        FLARENA,
        {"FLARENA_ALLOCATOR": "glibc", "FLARENA_GC": "off"},
        ours=True,
        default=False,
    ),
    Contender(
        "flarena-jemalloc-no-gc",
        "flarena, jemalloc mode, FLARENA_GC=off",
        FLARENA,
        {"FLARENA_ALLOCATOR": "jemalloc", "FLARENA_GC": "off"},
        ours=True,
        default=False,
    ),
    # The same jemalloc as ours, preloaded bare: what our layer above it costs (micro only).
    Contender(
        "jemalloc-plain", "jemalloc 5.3.1, preloaded bare", PLAIN_JEMALLOC, {"MALLOC_CONF": NVFLARE_CONF}, default=False
    ),
)
BY_NAME = {contender.name: contender for contender in ALL}


def select(names):
    """The contenders of a comma-separated list, or all default ones; SystemExit names a wrong one."""
    if not names:
        return [c for c in ALL if c.default]
    unknown = [n for n in names if n not in BY_NAME]
    if unknown:
        raise SystemExit(f"bench: unknown contender {unknown[0]!r}; known: {', '.join(BY_NAME)}")
    return [BY_NAME[n] for n in names]
