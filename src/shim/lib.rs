//! libflarena.so: chooses the allocator of a process at its first malloc and keeps its memory flat.
//!
//! Invariant of the malloc path (`exports`, `abi`, `backends`, flarena-sites, flarena-recycler, flarena-sys): it
//! does not allocate, format, panic or print; it takes no lock that may allocate and uses no
//! thread-local with a destructor. Markers, statistics and messages do so on cold paths, which the
//! program enters by its own call, and in the constructor.
//!
//! `docs/design/architecture.md` describes the folders and how a process boots. Calls between them go down only:
//! `scripts/lints/layers.py` has their order and checks it.

// Unit tests do not build the exports, so most functions have no caller there.
#![cfg_attr(test, allow(dead_code))]
#![cfg_attr(fuzzing, no_main)]

mod abi;
mod at_limit;
mod backends;
mod boot;
mod channel;
#[cfg(not(test))]
mod exports;
mod fork;
#[cfg(test)]
mod fuzz;
mod garbage;
mod governor;
mod launch;
mod memory_limit;
mod pools;
mod python;
mod report;
