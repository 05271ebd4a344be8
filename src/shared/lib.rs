//! The vocabulary that the shim and the command share: the table of settings, the defaults with
//! their reasons, jemalloc's options, NVFlare's process roles, the marker record,
//! allocation sites, the allocators that other libraries bring along, Python's command line, and the
//! kernel's paths.
//!
//! Pure code: bytes in, values out; no unsafe, no I/O. The modules that the shim calls from the
//! first `malloc` of a process (`settings`, `malloc_conf`, `role`, `defaults`, `huge_pages`) do not allocate.

#![cfg_attr(fuzzing, no_main)]

#[cfg(test)]
mod any_input_tests;
pub mod defaults;
#[cfg(test)]
mod fuzz;
pub mod huge_pages;
pub mod kernel_path;
pub mod malloc_conf;
pub mod marker;
pub mod parse;
pub mod pools;
pub mod python_line;
pub mod role;
mod row;
pub mod settings;
pub mod sites;
pub mod stages;
pub mod system_error;
mod values;

/// The version of the library, the command and the Python package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
