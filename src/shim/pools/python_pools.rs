//! Sizes of pools that only their library's Python interface reports. The Python package passes
//! them at each marker.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The process has no such pool.
const NONE: usize = usize::MAX;

pub static ARROW: AtomicUsize = AtomicUsize::new(NONE);
/// Pinned for a device.
pub static PINNED: AtomicUsize = AtomicUsize::new(NONE);
/// Of PyTorch's tensors on all GPUs.
pub static GPU_ALLOCATED: AtomicUsize = AtomicUsize::new(NONE);
/// Of PyTorch's caching allocator on all GPUs.
pub static GPU_RESERVED: AtomicUsize = AtomicUsize::new(NONE);

/// The bytes in a pool; `None`: unknown, or no such pool.
pub fn bytes(pool: &AtomicUsize) -> Option<u64> {
    let bytes = pool.load(Relaxed);
    (bytes != NONE).then_some(bytes as u64)
}

/// The body of `flarena_note_pools`.
pub fn note(arrow_bytes: usize, pinned_bytes: usize) {
    ARROW.store(arrow_bytes, Relaxed);
    PINNED.store(pinned_bytes, Relaxed);
}

/// The body of `flarena_note_gpu`.
pub fn note_gpu(allocated_bytes: usize, reserved_bytes: usize) {
    GPU_ALLOCATED.store(allocated_bytes, Relaxed);
    GPU_RESERVED.store(reserved_bytes, Relaxed);
}

/// The memory of a device belongs to the parent alone.
pub fn after_fork_in_child() {
    for pool in [&PINNED, &GPU_ALLOCATED, &GPU_RESERVED] {
        pool.store(NONE, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_that_does_not_exist_has_no_size_and_a_fork_has_no_memory_of_a_device() {
        let sizes = || [&ARROW, &PINNED, &GPU_ALLOCATED, &GPU_RESERVED].map(bytes);
        assert_eq!(sizes(), [None; 4]);
        ARROW.store(7, Relaxed);
        PINNED.store(0, Relaxed);
        GPU_ALLOCATED.store(8, Relaxed);
        assert_eq!(sizes(), [Some(7), Some(0), Some(8), None]);
        after_fork_in_child();
        assert_eq!(sizes(), [Some(7), None, None, None]);
        ARROW.store(NONE, Relaxed);
        assert_eq!(sizes(), [None; 4]);
    }
}
