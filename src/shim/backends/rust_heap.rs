//! The global allocator of the library's own Rust code: always the chosen backend.
//!
//! Rust's default calls `malloc` and `free` by name. If another allocator comes first in the process, some of
//! these names are its functions and others are composed from them (`abi::foreign`). A block would then be
//! freed in the wrong heap.
//!
//! If the backend has no memory, the reserve serves, because Rust would end the program. The reserve alone serves code
//! that must not wait for the backend's locks (`without_backend`).

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::ffi::c_void;

use crate::backends::choose::{self, dispatch};
use crate::backends::contract::MIN_ALIGN;
use crate::backends::reserve::Reserve;

/// 512 KiB, several times the need of statistics with all sites. Until it is touched it costs only addresses and
/// committed memory.
static RESERVE: Reserve<128> = Reserve::new();

thread_local! {
    /// This thread runs code in `without_backend`.
    static RESERVE_ONLY: Cell<bool> = const { Cell::new(false) };
}

/// Runs code that allocates from the reserve and frees nothing of the backend: the interrupted code of this thread may
/// hold the backend's locks. Blocks of the backend that the code drops are leaked.
pub fn without_backend<R>(code: impl FnOnce() -> R) -> R {
    RESERVE_ONLY.set(true);
    let result = code();
    RESERVE_ONLY.set(false);
    result
}

struct ChosenBackend;

#[global_allocator]
static HEAP: ChosenBackend = ChosenBackend;

fn is_aligned_by_malloc(layout: Layout) -> bool {
    layout.align() <= MIN_ALIGN.min(layout.size())
}

// SAFETY: each backend keeps the trait's contract for the alignments that it gets. Blocks of the reserve return to
// the reserve, all others to the backend, which never changes.
unsafe impl GlobalAlloc for ChosenBackend {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if RESERVE_ONLY.get() {
            return RESERVE.alloc(layout);
        }
        choose::choose();
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: a Layout's alignment is a power of two.
        let block: *mut u8 = unsafe {
            if is_aligned_by_malloc(layout) {
                dispatch!(malloc(size)).cast()
            } else {
                dispatch!(memalign(align, size)).cast()
            }
        };
        if block.is_null() {
            return RESERVE.alloc(layout);
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if RESERVE.owns(block) {
            RESERVE.dealloc(block, layout);
        } else if !RESERVE_ONLY.get() {
            // SAFETY: the block is not the reserve's, so alloc got it from the backend.
            unsafe { dispatch!(free(block.cast::<c_void>())) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_without_the_backend_allocates_from_the_reserve_and_keeps_blocks_of_the_backend() {
        let is_reserved = |block: &Box<u64>| RESERVE.owns((&raw const **block).cast());
        let before = Box::new(5_u64);
        let address = &raw const *before;
        let inside = without_backend(|| {
            drop(before);
            Box::new(7)
        });
        assert!(is_reserved(&inside) && !is_reserved(&Box::new(9)));
        // SAFETY: `without_backend` did not free the block.
        assert_eq!(unsafe { *address }, 5);
    }
}
