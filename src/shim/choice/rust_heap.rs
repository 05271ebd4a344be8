//! Where the library's own Rust code allocates: always in the backend that was chosen here.
//!
//! Rust's default calls `malloc` and its kin by name. With another allocator before us some of
//! these names stand for its functions or are put together from them (`abi::foreign`), and a block
//! would be freed in a heap that it does not come from.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;

use crate::choice::choose::{self, dispatch};
use crate::choice::contract::MIN_ALIGN;

struct ChosenBackend;

#[global_allocator]
static HEAP: ChosenBackend = ChosenBackend;

// SAFETY: each backend keeps C's promises, which are those of the trait, for the alignments that
// it is asked for; all four functions go to the same backend.
unsafe impl GlobalAlloc for ChosenBackend {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        choose::choose();
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: a Layout's alignment is a power of two.
        unsafe {
            if align <= MIN_ALIGN {
                dispatch!(malloc(size)).cast()
            } else {
                dispatch!(memalign(align, size)).cast()
            }
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        // SAFETY: the block comes from alloc or realloc here.
        unsafe { dispatch!(free(block.cast::<c_void>())) }
    }
}
