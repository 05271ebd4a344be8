//! libflarena.so: one library, preloaded, that chooses the allocator of a process and keeps its
//! memory flat.
//!
//! # How a process boots
//!
//! 1. The dynamic loader binds `malloc` and its kin to `exports`. The first call comes long before
//!    any constructor; `choice::choose` reads the environment without allocating, decides for
//!    glibc or jemalloc, and never changes its mind: a pointer does not carry its owner.
//! 2. The constructor (`boot`) runs before jemalloc's own. It applies the arena defaults, hides
//!    `mallctl` when jemalloc is not the one that serves, says what was wrong in the settings, and
//!    registers what fork and exit need.
//! 3. From then on the hot path is one comparison with a constant and a jump into the backend (`choice::choose`).
//!
//! # The rules of the malloc path (`exports`, `abi`, `choice`, `sites`, `recycler`, `process`)
//!
//! No allocation, no formatting, no panic, no printing, no lock that may allocate, no thread-local
//! with a destructor. Whatever wants those (markers, statistics, messages) lives on cold paths
//! that a program enters by its own call, or in the constructor.

// The rooms, from above: boot, exports, fork, governor, report, garbage, abi, launch, choice, sites, python, pools,
// recycler, process.
// Calls go down only; scripts/test.sh lints proves it.

// Without its exports the library has no callers: unit tests reach the pure parts only.
#![cfg_attr(test, allow(dead_code))]
#![cfg_attr(fuzzing, no_main)]

mod abi;
mod boot;
mod choice;
#[cfg(not(test))]
mod exports;
mod fork;
#[cfg(test)]
mod fuzz;
mod garbage;
mod governor;
mod launch;
mod pools;
mod python;
mod report;
mod sites;
