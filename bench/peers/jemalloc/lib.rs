//! Nothing but the dependency: cargo compiles jemalloc, the linker of scripts/bench/build.py makes the preload.
