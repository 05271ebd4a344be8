//! What a process holds in allocators beside malloc: how much, as far as that is told, and how to make them
//! give back what they keep. `FLARENA_POOLS=off` leaves all of them alone.

mod arenas;
mod foreign;
pub mod python_pools;

use flarena_sys::{config, seccomp};

/// Bytes in pools that are not malloc's; `None` where there is no such pool, or nobody told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub pymalloc_bytes: Option<u64>,
    pub arrow_bytes: Option<u64>,
    pub pinned_bytes: Option<u64>,
}

/// Called once by the constructor.
pub fn configure() {
    if is_on() {
        arenas::watch();
    }
}

pub fn usage() -> Usage {
    let (arrow_bytes, pinned_bytes) = python_pools::last();
    Usage {
        pymalloc_bytes: arenas::held_bytes(),
        arrow_bytes,
        pinned_bytes,
    }
}

/// Makes the allocators that lie in other libraries give back what is free, where they can be reached
/// without their library's help. Answers whether there was one. Takes milliseconds for each 100 MB.
pub fn purge() -> bool {
    may_purge() && foreign::purge()
}

pub fn has_any() -> bool {
    may_purge() && foreign::has_any()
}

/// Behind a seccomp list no call is made that the program does not make.
fn may_purge() -> bool {
    is_on() && !seccomp::is_closed()
}

fn is_on() -> bool {
    config::settings().pools
}
