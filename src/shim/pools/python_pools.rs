//! Sizes of pools that only their library's Python interface reports. The Python package passes
//! them at each marker.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The process has no such pool.
const NONE: usize = usize::MAX;

/// The bytes in a pool.
pub struct Pool(AtomicUsize);

pub static ARROW: Pool = Pool::new();
/// Pinned for a device.
pub static PINNED: Pool = Pool::new();
/// Of PyTorch's tensors on all GPUs.
pub static GPU_ALLOCATED: Pool = Pool::new();
/// Of PyTorch's caching allocator on all GPUs.
pub static GPU_RESERVED: Pool = Pool::new();

impl Pool {
    const fn new() -> Pool {
        Pool(AtomicUsize::new(NONE))
    }

    pub fn note(&self, bytes: usize) {
        self.0.store(bytes, Relaxed);
    }

    /// `None`: unknown, or no such pool.
    pub fn bytes(&self) -> Option<u64> {
        let bytes = self.0.load(Relaxed);
        (bytes != NONE).then_some(bytes as u64)
    }
}

/// The body of `flarena_note_pools`.
pub fn note(arrow_bytes: usize, pinned_bytes: usize) {
    ARROW.note(arrow_bytes);
    PINNED.note(pinned_bytes);
}

/// The body of `flarena_note_gpu`.
pub fn note_gpu(allocated_bytes: usize, reserved_bytes: usize) {
    GPU_ALLOCATED.note(allocated_bytes);
    GPU_RESERVED.note(reserved_bytes);
}

/// The memory of a device belongs to the parent alone.
pub fn after_fork_in_child() {
    for pool in [&PINNED, &GPU_ALLOCATED, &GPU_RESERVED] {
        pool.note(NONE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_that_does_not_exist_has_no_size_and_a_fork_has_no_memory_of_a_device() {
        let sizes = || [&ARROW, &PINNED, &GPU_ALLOCATED, &GPU_RESERVED].map(Pool::bytes);
        assert_eq!(sizes(), [None; 4]);
        ARROW.note(7);
        PINNED.note(0);
        GPU_ALLOCATED.note(8);
        assert_eq!(sizes(), [Some(7), Some(0), Some(8), None]);
        after_fork_in_child();
        assert_eq!(sizes(), [Some(7), None, None, None]);
        ARROW.note(NONE);
        assert_eq!(sizes(), [None; 4]);
    }
}
