//! Empty: cargo compiles the dependency, and scripts/bench/peers.py links it into a preload library.
