//! The global allocator of the library's own Rust code: always the chosen backend.
//!
//! Rust's default calls `malloc` and `free` by name. If another allocator comes first in the process, some of
//! these names are its functions and others are composed from them (`abi::foreign`). A block would then be
//! freed in the wrong heap.
//!
//! If the backend has no memory, the reserve serves, because Rust would end the program. The reserve alone serves code
//! that must not wait for the backend's locks (`reserve::without_backend`).

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;

use crate::backends::choose::{self, dispatch};
use crate::backends::contract::MIN_ALIGN;
use crate::backends::reserve::{self, Reserve};

/// 512 KiB, several times the need of statistics with all sites. Until it is touched it costs only addresses and
/// committed memory.
static RESERVE: Reserve<128> = Reserve::new();

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
        if reserve::serves_alone() {
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
        } else if !reserve::serves_alone() {
            // SAFETY: the block is not the reserve's, so alloc got it from the backend.
            unsafe { dispatch!(free(block.cast::<c_void>())) }
        }
    }
}
