//! Allocators beside malloc in this process: how much they hold. `governor::python` makes them release free
//! memory. With `FLARENA_POOLS=off` this module does nothing.

mod arenas;
pub mod python_pools;

use flarena_sys::config;
use python_pools::{bytes, ARROW, GPU_ALLOCATED, GPU_RESERVED, PINNED};

/// Bytes in pools beside malloc; `None` if there is no such pool, or its size is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub pymalloc_bytes: Option<u64>,
    pub arrow_bytes: Option<u64>,
    pub pinned_bytes: Option<u64>,
    pub gpu_allocated_bytes: Option<u64>,
    pub gpu_reserved_bytes: Option<u64>,
}

/// Called once by the constructor.
pub fn configure() {
    if config::settings().pools {
        arenas::watch();
    }
}

pub fn usage() -> Usage {
    Usage {
        pymalloc_bytes: arenas::held_bytes(),
        arrow_bytes: bytes(&ARROW),
        pinned_bytes: bytes(&PINNED),
        gpu_allocated_bytes: bytes(&GPU_ALLOCATED),
        gpu_reserved_bytes: bytes(&GPU_RESERVED),
    }
}
