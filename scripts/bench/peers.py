"""Builds peers that are not packaged, or only in old versions, from crates and links them into preload libraries.

The package that depends on the crate is generated in build/bench/peers. It names an exact version, because the crate
contains the allocator's source.
"""

import glob
import os
import subprocess
from dataclasses import dataclass, field

from places import BUILD, ROOT, is_older

SOURCES = os.path.join(ROOT, "bench", "peers")
MANIFEST = """[package]
name = "peer"
version = "0.0.0"
edition = "2021"
[lib]
path = "lib.rs"
[dependencies]
{crate}
[workspace]
"""
FAMILY = ("malloc", "free", "calloc", "realloc", "memalign", "aligned_alloc", "posix_memalign", "valloc", "pvalloc")


@dataclass(frozen=True)
class Peer:
    crate: str  # the dependency, as cargo writes it
    archive: str  # produced by the crate's build
    names: dict = field(default_factory=dict)  # malloc's functions by the peer's symbols, where they differ
    sources: tuple = ()  # in bench/peers
    libraries: tuple = ()


def camel(name):
    return "".join(part.capitalize() for part in name.split("_"))


PEERS = {
    # The jemalloc that libflarena.so contains, without a prefix.
    "jemalloc": Peer(
        'tikv-jemalloc-sys = { version = "=0.7.1", features = ["stats", "unprefixed_malloc_on_supported_platforms"] }',
        "libjemalloc_pic.a",
    ),
    "mimalloc": Peer('libmimalloc-sys2 = { version = "=0.1.65", features = ["v3", "override"] }', "libmimalloc.a"),
    "snmalloc": Peer(
        'snmalloc-sys = { version = "=0.7.6", default-features = false, features = ["build_cc", "libc-api"] }',
        "libsnmallocshim-rust.a",
        names={name: f"sn_{name}" for name in (*FAMILY, "reallocarray", "malloc_usable_size")},
        libraries=("-lstdc++",),
    ),
    "tcmalloc": Peer(
        'libtcmalloc-sys = { version = "=0.1.14", features = ["extension"] }',
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
    """Builds the preload library if it is missing or older than this file."""
    target = os.path.dirname(path(name))
    if is_older(path(name), [__file__]):
        os.makedirs(target, exist_ok=True)
        with open(os.path.join(target, "Cargo.toml"), "w") as manifest:
            manifest.write(MANIFEST.format(crate=PEERS[name].crate))
        with open(os.path.join(target, "lib.rs"), "w"):
            pass  # cargo compiles the dependency only
        subprocess.run(["cargo", "build", "--quiet", "--release", "--target-dir", target], cwd=target, check=True)
        link(name, target)


def link(name, target):
    peer = PEERS[name]
    archives = glob.glob(os.path.join(target, "release", "build", "*", "out", "**", peer.archive), recursive=True)
    whole = ["-Wl,--whole-archive", max(archives, key=os.path.getmtime), "-Wl,--no-whole-archive"]
    names = [f"-Wl,--defsym,{malloc}={own}" for malloc, own in peer.names.items()]
    sources = [os.path.join(SOURCES, source) for source in peer.sources]
    libraries = [*peer.libraries, "-pthread", "-ldl", "-lm"]
    command = ["cc", "-shared", "-fPIC", "-O2", "-o", path(name), *sources, *whole, *names, *libraries]
    subprocess.run(command, check=True)
