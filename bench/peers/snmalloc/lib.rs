//! Nothing but the dependency: cargo compiles jemalloc, the linker of scripts/bench/peers.py makes the preload.
