//! Access to the process, libc and the kernel that is safe on the malloc path. The lowest crate: it knows
//! no allocator.
//!
//! Invariant: nothing here allocates except `identity` and functions that only cold paths use.
//!
//! - `attention`: whether the calls for large blocks have more to do.
//! - `io`: files and writes that keep errno and raise no signal.
//! - `headroom`: counts large allocations until the distance to a memory limit must be measured.
//! - `limits`: the limits by which the system refuses memory.
//! - `loader`: loaded objects, their symbols, and callers by return address.
//! - `proc`: `/proc`, `/sys` and control groups.
//! - `sync`: locks and once-cells, and libc's stdio lock.
//! - `thread_pointer`: the identity and the processor of the calling thread.
//! - `thread`: the calling thread, the helper thread, and signals around a fork.
//! - `unmap_hooks`: reports unmapped pages to RDMA libraries.

// Constructors here initialise statics; nothing asks for a default value.
#![allow(clippy::new_without_default)]

pub mod abort;
pub mod attention;
pub mod clock;
pub mod config;
pub mod env;
pub mod errno;
pub mod headroom;
pub mod identity;
pub mod io;
pub mod limits;
pub mod loader;
pub mod owner;
pub mod proc;
pub mod seccomp;
pub mod sync;
pub mod thread;
pub mod thread_pointer;
pub mod time;
pub mod unmap_hooks;
