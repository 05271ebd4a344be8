//! The functions behind the exports of the malloc family. They keep the promises of C, POSIX and glibc in both modes.

use std::ffi::c_void;

pub mod backend;
pub mod counted;
pub mod credentials;
pub mod foreign;
pub mod heap;
pub mod jemalloc;
pub mod limits;
pub mod quiesced;
pub mod sandbox;
pub mod statistics;

/// A block, or any other address of the program.
pub type Ptr = *mut c_void;
