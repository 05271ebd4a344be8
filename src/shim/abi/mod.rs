//! What callers of the malloc family enter by: the promises of C, POSIX and glibc, kept in both modes.

pub mod backend;
pub mod foreign;
pub mod heap;
pub mod jemalloc;
pub mod large;
pub mod sandbox;
pub mod statistics;
