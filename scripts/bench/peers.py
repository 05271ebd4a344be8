"""Peers that no package has, or not so new: each built from a crate and linked into a plain preload."""

import glob
import os
import subprocess
from dataclasses import dataclass, field

from places import BUILD, ROOT, is_older

SOURCES = os.path.join(ROOT, "bench", "peers")
FAMILY = ("malloc", "free", "calloc", "realloc", "memalign", "aligned_alloc", "posix_memalign", "valloc", "pvalloc")


@dataclass(frozen=True)
class Peer:
    archive: str  # what the crate's build leaves
    names: dict = field(default_factory=dict)  # of malloc's functions, where it has others
    sources: tuple = ()  # beside its Cargo.toml
    libraries: tuple = ()


def camel(name):
    return "".join(part.capitalize() for part in name.split("_"))


PEERS = {
    "jemalloc": Peer("libjemalloc_pic.a"),
    "layer": Peer("libjemalloc_pic.a", sources=("layer.c",)),
    "mimalloc": Peer("libmimalloc.a"),
    "snmalloc": Peer(
        "libsnmallocshim-rust.a",
        names={name: f"sn_{name}" for name in (*FAMILY, "reallocarray", "malloc_usable_size")},
        libraries=("-lstdc++",),
    ),
    "tcmalloc": Peer(
        "libtcmalloc.a",
        names={
            **{name: f"TCMallocInternal{camel(name)}" for name in FAMILY},
            "reallocarray": "TCMallocInternalReallocArray",
            "malloc_usable_size": "TCMallocInternalMallocSize",
        },
        sources=("background.c",),
        libraries=("-lstdc++",),
    ),
}


def path(name):
    return os.path.join(BUILD, "peers", name, f"lib{name}-peer.so")


def build(name):
    """Makes the preload where it is missing or older than its recipe."""
    recipe, target = os.path.join(SOURCES, name, "Cargo.toml"), os.path.dirname(path(name))
    if is_older(path(name), [recipe, __file__]):
        command = ["cargo", "build", "--quiet", "--release", "--locked", "--target-dir", target]
        subprocess.run(command, cwd=os.path.dirname(recipe), check=True)
        link(name, target)


def link(name, target):
    peer = PEERS[name]
    archives = glob.glob(os.path.join(target, "release", "build", "*", "out", "**", peer.archive), recursive=True)
    whole = ["-Wl,--whole-archive", max(archives, key=os.path.getmtime), "-Wl,--no-whole-archive"]
    names = [f"-Wl,--defsym,{malloc}={own}" for malloc, own in peer.names.items()]
    sources = [os.path.join(SOURCES, name, source) for source in peer.sources]
    libraries = [*peer.libraries, "-pthread", "-ldl", "-lm"]
    command = ["cc", "-shared", "-fPIC", "-O2", "-o", path(name), *sources, *whole, *names, *libraries]
    subprocess.run(command, check=True)
