//! What the functions of malloc's family call: bytes in, pointers out, errno kept.

use crate::core::unit::UNIT_BYTES;
use crate::instance::{detect_page_bytes, ENABLED, MIN_BYTES, RECYCLER};
use crate::ops::free::FreeOutcome;
use crate::ops::realloc::ResizeOutcome;
use flarena_sys::abort;
use flarena_sys::errno::SavedErrno;
use std::sync::atomic::Ordering::Relaxed;

/// Blocks have this alignment by nature.
pub const ALIGN_MAX: usize = UNIT_BYTES;

/// How `realloc` of a pointer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Realloc {
    NotOurs,
    Done(*mut u8),
    /// ENOMEM; the old block is intact.
    Failed,
    /// The new size is below the recycler's: the caller allocates, copies, and frees the old block.
    MoveToBackend,
}

/// A block of any size, for calls that come before any backend can serve. `free` knows it.
pub fn alloc_early(size: usize, zeroed: bool) -> *mut u8 {
    RECYCLER.set_page_shift(detect_page_bytes().ilog2());
    let start = RECYCLER.alloc_block(size.max(1), zeroed);
    start.map_or(std::ptr::null_mut(), |start| start as *mut u8)
}

/// True for a request that is ours. Alignments up to 2 MiB come by nature; larger ones are refused.
#[inline]
pub fn accepts(size: usize, align: usize) -> bool {
    align <= ALIGN_MAX
        && is_large(size)
        && size <= RECYCLER.geometry().max_bytes()
        && ENABLED.load(Relaxed)
}

/// A large block, whoever serves it.
#[inline]
pub fn is_large(size: usize) -> bool {
    size >= MIN_BYTES.load(Relaxed)
}

/// An uninitialised block for a request that `takes` grants, or null: the backend is to serve it.
pub fn alloc(size: usize) -> *mut u8 {
    block_or_null(size, false)
}

pub fn alloc_zeroed(size: usize) -> *mut u8 {
    block_or_null(size, true)
}

fn block_or_null(size: usize, zeroed: bool) -> *mut u8 {
    let _errno = SavedErrno::save();
    RECYCLER
        .alloc_block(size, zeroed)
        .map_or(std::ptr::null_mut(), |start| start as *mut u8)
}

/// Every block is such a multiple of 2 MiB. Frees are sifted before, by a multiple of 64 KiB (`abi::heap`).
#[inline(always)]
pub fn may_be_block(pointer: *const u8) -> bool {
    pointer as usize & (UNIT_BYTES - 1) == 0
}

/// None: not a block of the recycler.
pub fn usable_size(pointer: *const u8) -> Option<usize> {
    RECYCLER.size_at(pointer as usize)
}

/// False: not a block of the recycler. Ends the process when it is no block of anybody's.
#[inline]
pub fn free(pointer: *mut u8) -> bool {
    let start = pointer as usize;
    if may_be_block(pointer) {
        let _errno = SavedErrno::save();
        match RECYCLER.free_block(start) {
            FreeOutcome::Done => return true,
            FreeOutcome::NotOurs => {}
            FreeOutcome::Twice => abort::abort_with("free(): double free of", start),
        }
    }
    if RECYCLER.holds(start) {
        abort::abort_with("free(): double free of, or invalid pointer", start);
    }
    false
}

/// Ends the process when the pointer is no block of anybody's.
pub fn realloc(pointer: *mut u8, new_size: usize) -> Realloc {
    let _errno = SavedErrno::save();
    if RECYCLER.find(pointer as usize).is_none() {
        if RECYCLER.holds(pointer as usize) {
            abort::abort_with("realloc(): freed or invalid pointer", pointer as usize);
        }
        return Realloc::NotOurs;
    }
    if new_size < MIN_BYTES.load(Relaxed) {
        return Realloc::MoveToBackend;
    }
    if new_size > RECYCLER.geometry().max_bytes() {
        return Realloc::Failed;
    }
    match RECYCLER.resize(pointer as usize, new_size) {
        ResizeOutcome::GivenUp => Realloc::MoveToBackend,
        ResizeOutcome::NotOurs => Realloc::NotOurs,
        ResizeOutcome::Done(start) => Realloc::Done(start as *mut u8),
        ResizeOutcome::Failed => Realloc::Failed,
    }
}

/// Notes who allocated a block that `alloc` or `realloc` gave just now.
#[inline]
pub fn set_origin(pointer: *const u8, origin: u64) {
    RECYCLER.note_origin(pointer as usize, origin);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "asks the loader for the size of a page")]
    fn a_request_is_taken_up_to_the_largest_that_the_recycler_serves() {
        let (enabled, min_bytes) = (
            ENABLED.swap(true, Relaxed),
            MIN_BYTES.swap(1 << 20, Relaxed),
        );
        RECYCLER.set_page_shift(detect_page_bytes().ilog2());
        let most = RECYCLER.geometry().max_bytes();
        assert!(!accepts((1 << 20) - 1, 1));
        assert!(accepts(1 << 20, ALIGN_MAX));
        assert!(!accepts(1 << 20, 2 * ALIGN_MAX));
        assert!(accepts(most, 1));
        assert!(RECYCLER.geometry().need(most).is_some());
        for refused in [most + 1, (1 << 46) + 1, usize::MAX] {
            assert!(!accepts(refused, 1), "{refused}");
        }
        ENABLED.store(enabled, Relaxed);
        MIN_BYTES.store(min_bytes, Relaxed);
    }

    #[test]
    fn only_a_multiple_of_a_unit_can_be_a_block() {
        for (address, can_be) in [
            (1 << 21, true),
            (5 << 21, true),
            (5 << 16, false),
            (1, false),
        ] {
            assert_eq!(may_be_block(address as *const u8), can_be, "{address:#x}");
        }
        assert!(!may_be_block((UNIT_BYTES - 1) as *const u8));
    }

    fn is_had_and_given_back(block: *mut u8, size: usize) -> bool {
        let had = usable_size(block).is_some_and(|usable| usable >= size);
        had && free(block) && usable_size(block).is_none()
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the real kernel")]
    fn a_block_of_any_size_can_be_had_before_anything_is_chosen() {
        for size in [0, 1, 3 << 20] {
            assert!(is_had_and_given_back(alloc_early(size, true), size.max(1)));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the real kernel")]
    fn a_block_is_had_and_given_back() {
        RECYCLER.set_page_shift(detect_page_bytes().ilog2());
        for block in [alloc(3 << 20), alloc_zeroed(3 << 20)] {
            assert!(is_had_and_given_back(block, 3 << 20));
        }
    }
}
