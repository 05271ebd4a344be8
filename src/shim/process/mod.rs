//! The process that we are in: what it was told, who owns its malloc, what the system says of it.
//! The lowest room: it knows nothing of allocators. Nothing here allocates but `identity`, which
//! cold paths alone may ask.

pub mod callers;
pub mod cancellation;
pub mod cgroup;
pub mod clock;
pub mod config;
pub mod cpu;
pub mod elf;
pub mod env;
pub mod fatal;
pub mod file;
pub mod found;
pub mod huge_pages;
pub mod identity;
pub mod known;
pub mod loader;
pub mod lock;
pub mod mappings;
pub mod new_thread;
pub mod objects;
pub mod owner;
pub mod paging;
pub mod procfs;
pub mod quiet_write;
pub mod sandbox;
pub mod signals;
pub mod stdio;
pub mod swap;
pub mod symbols;
pub mod sync;
pub mod thread;
