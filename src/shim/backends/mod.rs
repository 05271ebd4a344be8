//! The two backends, glibc and jemalloc, and the choice between them.

pub mod choose;
pub mod contract;
pub mod fork;
pub mod glibc;
pub mod jemalloc;
pub mod mallinfo;
mod refusals;
pub mod reserve;
#[cfg(not(test))]
mod rust_heap;
