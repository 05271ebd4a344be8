//! libflarena.so: one library, preloaded, that chooses the allocator of a process and keeps its
//! memory flat.
//!
//! # How a process boots
//!
//! 1. The dynamic loader binds `malloc` and its kin to `exports`. The first call comes long before
//!    any constructor; `backend::choose` reads the environment without allocating, decides for
//!    glibc or jemalloc, and never changes its mind: a pointer does not carry its owner.
//! 2. The constructor (`start`) runs before jemalloc's own. It applies the arena defaults, hides
//!    `mallctl` when jemalloc is not the one that serves, says what was wrong in the settings, and
//!    registers what fork and exit need.
//! 3. From then on the hot path is one comparison with a constant and a jump into the backend (`hot`).
//!
//! # The rules of the malloc path (`exports`, `heap`, `backend`, `glibc`, `jemalloc`, `env`)
//!
//! No allocation, no formatting, no panic, no printing, no lock that may allocate, no thread-local
//! with a destructor. Whatever wants those (markers, statistics, messages) lives on cold paths
//! that a program enters by its own call, or in the constructor.

// Without its exports the library has no callers: unit tests reach the pure parts only.
#![cfg_attr(test, allow(dead_code))]

mod backend;
mod callers;
mod cgroup;
mod constants;
mod env;
#[cfg(not(test))]
mod exports;
mod foreign;
mod fork;
mod glibc;
mod governor;
mod heap;
mod hot;
mod identity;
mod jemalloc;
mod large;
mod lock;
mod mark;
mod memory;
mod procfs;
mod quiet_write;
mod recycler;
#[cfg(not(test))]
mod rust_heap;
mod say;
mod start;
mod stats;
mod symbols;
mod trim;
