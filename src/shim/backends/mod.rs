//! The two backends, glibc and jemalloc, and the choice between them.

pub mod choose;
pub mod contract;
pub mod fork;
pub mod glibc;
pub mod jemalloc;
pub mod mallinfo;
mod refusals;
mod reserve;
#[cfg(not(test))]
pub mod rust_heap;
