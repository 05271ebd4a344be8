//! The functions behind the exports of the malloc family. They keep the promises of C, POSIX and glibc in both modes.

pub mod backend;
pub mod closing;
pub mod copies;
pub mod counted;
pub mod credentials;
pub mod foreign;
pub mod heap;
pub mod jemalloc;
pub mod limits;
pub mod sandbox;
pub mod statistics;
