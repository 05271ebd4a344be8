"""Builds peers that are not packaged, or only in old versions, from crates and links them into preload libraries."""

import glob
import os
import subprocess
from dataclasses import dataclass, field

from places import BUILD, ROOT, is_older

SOURCES = os.path.join(ROOT, "bench", "peers")
FAMILY = ("malloc", "free", "calloc", "realloc", "memalign", "aligned_alloc", "posix_memalign", "valloc", "pvalloc")


@dataclass(frozen=True)
class Peer:
    archive: str  # produced by the crate's build
    names: dict = field(default_factory=dict)  # malloc's functions by the peer's symbols, where they differ
    sources: tuple = ()  # in the folder of its Cargo.toml
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
    """Builds the preload library if it is missing or older than its manifest."""
    manifest, target = os.path.join(SOURCES, name, "Cargo.toml"), os.path.dirname(path(name))
    if is_older(path(name), [manifest, __file__]):
        command = ["cargo", "build", "--quiet", "--release", "--locked", "--target-dir", target]
        subprocess.run(command, cwd=os.path.dirname(manifest), check=True)
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
