//! Where the library's own Rust code allocates: always in the backend that was chosen here.
//!
//! Rust's default calls `malloc` and its kin by name. With another allocator before us some of
//! these names stand for its functions or are put together from them (`abi::foreign`), and a block
//! would be freed in a heap that it does not come from.
//!
//! Where the backend has no memory the reserve has some: Rust's library would end the program.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;

use crate::choice::choose::{self, dispatch};
use crate::choice::contract::MIN_ALIGN;
use crate::choice::reserve::Reserve;

/// 512 KiB, several times what statistics with all sites take. Untouched it costs addresses, and a promise of memory
/// where that is not made twice.
static RESERVE: Reserve<128> = Reserve::new();

struct ChosenBackend;

#[global_allocator]
static HEAP: ChosenBackend = ChosenBackend;

// SAFETY: each backend keeps C's promises, which are those of the trait, for the alignments that
// it is asked for; blocks of the reserve go back to it, all others to the
// backend that they come from.
unsafe impl GlobalAlloc for ChosenBackend {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        choose::choose();
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: a Layout's alignment is a power of two.
        let block: *mut u8 = unsafe {
            if align <= MIN_ALIGN {
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
            return;
        }
        // SAFETY: the block comes from alloc or realloc here.
        unsafe { dispatch!(free(block.cast::<c_void>())) }
    }
}
