//! Definitions that the library and the command share: settings, defaults, jemalloc's options,
//! NVFlare's process roles, marker records, allocation sites, other libraries' allocators, Python's
//! command line, the memory controller's files, and the kernel's paths.
//!
//! Pure code: bytes in, values out; no unsafe code and no I/O. The modules that the library calls
//! from the first `malloc` of a process do not allocate: `settings`, `malloc_conf`, `role`,
//! `defaults`, `huge_pages`, `cgroup`.

pub mod backoff;
pub mod cgroup;
pub mod defaults;
pub mod fnv;
pub mod huge_pages;
pub mod kernel_path;
pub mod malloc_conf;
pub mod marker;
pub mod parse;
pub mod pools;
pub mod python_line;
pub mod role;
pub mod settings;
pub mod sites;
pub mod stages;
pub mod system_error;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod values;

/// The version of the library, the command and the Python package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
