"""The contenders: who serves malloc in a run, and how a run gets there (environment only)."""

import glob
import os
from dataclasses import dataclass, field, replace

import pages
import peers
from places import ROOT

SHIPPED = os.path.join(ROOT, "build", "release", os.uname().machine, "libflarena.so")
FLARENA = os.environ.get("FLARENA_LIB") or SHIPPED
HOOKS = os.path.join(ROOT, "src", "python", "flarena", "hooks")
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
    crate: str = ""  # instead of a library: a peer that is built from a crate
    pages_kb: int = 0  # during its runs the machine gives pages of this size on request

    def library_path(self):
        """Empty: the libc's; None: it is missing."""
        library = peers.path(self.crate) if self.crate else self.library
        return find_library(library) if library else ""

    def obstacle(self):
        """Why it cannot run on this machine; None when it can."""
        if self.library_path() is None:
            return f"{self.library or 'its build'} is missing"
        return pages.obstacle(self.pages_kb) if self.pages_kb else None

    def environment(self):
        environment = {k: v for k, v in os.environ.items() if k not in FOREIGN and not k.startswith(FOREIGN_PREFIXES)}
        environment.update(self.settings)
        if library := self.library_path():
            environment["LD_PRELOAD"] = library
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


def flarena(mode, suffix="", setting=""):
    """flarena in a mode; with a setting of its own it takes part only where it is named."""
    settings = dict(one.split("=") for one in (f"FLARENA_ALLOCATOR={mode}", setting) if one)
    name = "-".join(part for part in ("flarena", mode, suffix) if part)
    title = ", ".join(part for part in ("flarena", f"{mode} mode", setting) if part)
    return Contender(name, title, FLARENA, settings, ours=True, default=not suffix)


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
    # The jemalloc that is inside ours, preloaded bare: in micro, what our layer above it costs.
    Contender(
        "jemalloc-plain", "jemalloc 5.3.1, NVFlare's options", crate="jemalloc", settings={"MALLOC_CONF": NVFLARE_CONF}
    ),
    # And what the least layer that can be would cost: one comparison and one jump for each call.
    Contender("jemalloc-layer", "jemalloc 5.3.1 behind one comparison", crate="layer", default=False),
    Contender("mimalloc", "mimalloc 2", "libmimalloc.so.2"),
    Contender("mimalloc3", "mimalloc 3", crate="mimalloc"),
    Contender("tcmalloc", "gperftools tcmalloc", "libtcmalloc_minimal.so.4"),
    Contender("tcmalloc-google", "Google's tcmalloc, background thread", crate="tcmalloc"),
    Contender("tbbmalloc", "tbbmalloc", "libtbbmalloc_proxy.so.2"),
    Contender("snmalloc", "snmalloc", crate="snmalloc"),
    flarena("glibc"),
    flarena("jemalloc"),
    # What collecting garbage by bytes costs and yields.
    flarena("glibc", "no-gc", "FLARENA_GC=off"),
    flarena("jemalloc", "no-gc", "FLARENA_GC=off"),
    # What noting the line of each large block costs.
    flarena("glibc", "sites", "FLARENA_SITES=on"),
    flarena("jemalloc", "sites", "FLARENA_SITES=on"),
    # What waiting in swap saves and costs.
    flarena("glibc", "hibernate", "FLARENA_HIBERNATE=5"),
    flarena("jemalloc", "hibernate", "FLARENA_HIBERNATE=5"),
)


def on_64_kb(name, **settings):
    """A contender where the machine gives pages of 64 KB on request; `settings` make it ask, where it can."""
    plain = next(contender for contender in ALL if contender.name == name)
    conf = settings.pop("conf", None)
    if conf:
        settings["MALLOC_CONF"] = f"{plain.settings['MALLOC_CONF']},{conf}"
    return replace(
        plain,
        name=name + "-64k",
        title=plain.title + ", 64 KB pages on madvise",
        settings={**plain.settings, **settings},
        default=False,
        pages_kb=64,
    )


# Each asks as its own manual says. gperftools' tcmalloc has no such option.
ON_64_KB = (
    on_64_kb("glibc-trim", GLIBC_TUNABLES="glibc.malloc.hugetlb=1"),
    on_64_kb("glibc-fixed", GLIBC_TUNABLES="glibc.malloc.hugetlb=1"),
    on_64_kb("jemalloc", conf="thp:always"),
    on_64_kb("mimalloc", MIMALLOC_ALLOW_LARGE_OS_PAGES="1", MIMALLOC_LARGE_OS_PAGES="1"),
    on_64_kb("mimalloc3", MIMALLOC_ALLOW_LARGE_OS_PAGES="1"),
    on_64_kb("tcmalloc"),
    on_64_kb("flarena-glibc"),
    on_64_kb("flarena-jemalloc"),
)
BY_NAME = {contender.name: contender for contender in ALL + ON_64_KB}


def select(names):
    """The contenders of a comma-separated list, or all default ones; SystemExit names a wrong one."""
    if not names:
        return [c for c in ALL if c.default]
    unknown = [n for n in names if n not in BY_NAME]
    if unknown:
        raise SystemExit(f"bench: unknown contender {unknown[0]!r}; known: {', '.join(BY_NAME)}")
    return [BY_NAME[n] for n in names]
