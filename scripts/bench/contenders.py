"""The contenders: which library serves malloc in a run, and with which environment."""

import glob
import os
from dataclasses import dataclass, field, replace

import peers
from places import ROOT

SHIPPED = os.path.join(ROOT, "build", "release", os.uname().machine, "libflarena.so")
FLARENA = os.environ.get("FLARENA_LIB") or SHIPPED
HOOKS = os.path.join(ROOT, "src", "python", "flarena", "hooks")
CLIENT_ARENAS = os.path.join(ROOT, "bench", "nvflare", "client_arenas")
NVFLARE_CONF = "dirty_decay_ms:5000,muzzy_decay_ms:5000"
THRESHOLD_BYTES = str(128 * 1024)  # glibc's initial value; setting it stops glibc from adapting it

# Removed from the environment: settings of the caller's shell would change the measurement.
FOREIGN = ("LD_PRELOAD", "PYTHONMALLOC", "GLIBC_TUNABLES")
FOREIGN_PREFIXES = ("MALLOC_", "FLARENA_", "NVFLARE_", "MIMALLOC_", "TCMALLOC_", "_RJEM_")


@dataclass(frozen=True)
class Contender:
    name: str
    title: str
    library: str = ""  # file name or path of the preload; empty: libc's malloc
    settings: dict = field(default_factory=dict)
    trims: bool = False  # the workload calls malloc_trim after each round
    gc_rounds: bool = False  # NVFlare cleans up in each round, on the server and on the clients
    client_arenas: int = 0  # MALLOC_ARENA_MAX of NVFlare's clients, if the server has another
    is_flarena: bool = False
    default: bool = True  # runs when neither the workload nor --only names contenders
    crate: str = ""  # a peer built from a crate, instead of `library`

    def library_path(self):
        """Path of the preload; empty: libc's malloc; None: not installed."""
        library = peers.path(self.crate) if self.crate else self.library
        return find_library(library) if library else ""

    def obstacle(self):
        """Why this machine cannot run it, or None."""
        if self.library_path() is None:
            return f"{self.library or 'its build'} is missing"
        return None

    def environment(self):
        environment = {k: v for k, v in os.environ.items() if k not in FOREIGN and not k.startswith(FOREIGN_PREFIXES)}
        environment.update(self.settings)
        if library := self.library_path():
            environment["LD_PRELOAD"] = library
        if self.is_flarena:  # as `flarena run` does
            add_python_path(environment, HOOKS)
        if self.trims:
            environment["BENCH_TRIM"] = "1"
        if self.gc_rounds:
            environment["BENCH_GC_ROUNDS"] = "1"
        if self.client_arenas:
            environment["BENCH_CLIENT_ARENAS"] = str(self.client_arenas)
            add_python_path(environment, CLIENT_ARENAS)
        return environment


def add_python_path(environment, path):
    paths = [path, environment.get("PYTHONPATH")]
    environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)


def find_library(name):
    """Finds a library by file name in the library folders of any distribution; None when it is missing."""
    if os.path.isabs(name):
        return name if os.path.exists(name) else None
    for pattern in ("/usr/local/lib", "/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib"):
        for path in sorted(glob.glob(os.path.join(pattern, name))):
            return path
    return None


def flarena(mode, suffix="", setting=""):
    """flarena in one mode. A variant with a setting (and a suffix) runs only where it is named."""
    settings = dict(one.split("=") for one in (f"FLARENA_ALLOCATOR={mode}", setting) if one)
    name = "-".join(part for part in ("flarena", mode, suffix) if part)
    title = ", ".join(part for part in ("flarena", f"{mode} mode", setting) if part)
    return Contender(name, title, FLARENA, settings, is_flarena=True, default=not suffix)


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
    # The jemalloc that flarena contains, preloaded alone: the reference for the layer's cost in micro.
    Contender(
        "jemalloc-plain", "jemalloc 5.3.1, NVFlare's options", crate="jemalloc", settings={"MALLOC_CONF": NVFLARE_CONF}
    ),
    Contender("mimalloc", "mimalloc 2", "libmimalloc.so.2"),
    Contender("mimalloc3", "mimalloc 3", crate="mimalloc"),
    Contender("tcmalloc", "gperftools tcmalloc", "libtcmalloc_minimal.so.4"),
    Contender("tcmalloc-google", "Google's tcmalloc, background thread", crate="tcmalloc"),
    Contender("tbbmalloc", "tbbmalloc", "libtbbmalloc_proxy.so.2"),
    Contender("snmalloc", "snmalloc", crate="snmalloc"),
    flarena("glibc"),
    flarena("jemalloc"),
)


def with_gc_rounds(name):
    """A contender in an NVFlare job that cleans up in each round, as NVFlare's guide advises under memory pressure."""
    plain = next(contender for contender in ALL if contender.name == name)
    title = f"{plain.title}, NVFlare's cleanup each round"
    return replace(plain, name=name + "-rounds", title=title, gc_rounds=True, default=False)


WITH_GC_ROUNDS = (
    # All of NVFlare's advice for memory: 4 arenas on the server, 2 on clients, and a cleanup each round on both.
    Contender(
        "nvflare-advice",
        "glibc, NVFlare's own advice",
        settings={"MALLOC_ARENA_MAX": "4"},
        client_arenas=2,
        gc_rounds=True,
        default=False,
    ),
    *map(with_gc_rounds, ("glibc-fixed", "jemalloc", "tcmalloc", "flarena-glibc", "flarena-jemalloc")),
)


BY_NAME = {contender.name: contender for contender in ALL + WITH_GC_ROUNDS}


def select(names):
    """The named contenders, or all default ones. Exits with a message for an unknown name."""
    if not names:
        return [c for c in ALL if c.default]
    unknown = [n for n in names if n not in BY_NAME]
    if unknown:
        raise SystemExit(f"bench: unknown contender {unknown[0]!r}; known: {', '.join(BY_NAME)}")
    return [BY_NAME[n] for n in names]
