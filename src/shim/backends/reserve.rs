//! A static reserve for the library's own Rust code when the system has no memory left.
//!
//! A program can handle NULL from malloc, but Rust's standard library ends the process. The library needs a few
//! kilobytes for a marker or an answer; they come from here. The pages are untouched until first use.
//!
//! There is no lock, so a fork cannot leave one locked. Chunks of threads that a fork does not copy stay used.

use std::alloc::Layout;
use std::cell::{Cell, UnsafeCell};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Relaxed};

thread_local! {
    static SERVES_ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Runs code that allocates from the reserve and frees nothing of the backend: the interrupted code of this thread may
/// hold the backend's locks. Blocks of the backend that the code drops are leaked.
pub fn without_backend<R>(code: impl FnOnce() -> R) -> R {
    SERVES_ALONE.set(true);
    let result = code();
    SERVES_ALONE.set(false);
    result
}

/// True if this thread runs code in `without_backend`.
pub fn serves_alone() -> bool {
    SERVES_ALONE.get()
}

const CHUNK: usize = 64;
const CHUNKS_PER_WORD: usize = u64::BITS as usize;

/// Aligned to the size of a chunk.
#[repr(align(64))]
struct Aligned<T>(T);

/// `WORDS` times 4 KiB.
pub struct Reserve<const WORDS: usize> {
    chunks: Aligned<UnsafeCell<[[u8; CHUNK * CHUNKS_PER_WORD]; WORDS]>>,
    /// One bit per chunk: it is in use.
    used: [AtomicU64; WORDS],
}

// SAFETY: a chunk belongs to the block for which its bit was set, until that block is freed.
unsafe impl<const WORDS: usize> Sync for Reserve<WORDS> {}

/// The chunks of a block: at least one, also for an empty block.
fn chunks_of(layout: Layout) -> usize {
    layout.size().div_ceil(CHUNK).max(1)
}

impl<const WORDS: usize> Reserve<WORDS> {
    pub const fn new() -> Self {
        Reserve {
            chunks: Aligned(UnsafeCell::new([[0; CHUNK * CHUNKS_PER_WORD]; WORDS])),
            used: [const { AtomicU64::new(0) }; WORDS],
        }
    }

    /// First fit; null if no run of chunks is long enough.
    pub fn alloc(&self, layout: Layout) -> *mut u8 {
        let count = chunks_of(layout);
        let mut first = 0;
        while layout.align() <= CHUNK && first + count <= WORDS * CHUNKS_PER_WORD {
            match self.claim(first..first + count) {
                Ok(()) => return self.start().wrapping_add(first * CHUNK),
                Err(taken) => first = taken + 1,
            }
        }
        std::ptr::null_mut()
    }

    pub fn owns(&self, block: *const u8) -> bool {
        (block as usize).wrapping_sub(self.start() as usize) < size_of_val(&self.chunks)
    }

    /// Frees a block that `alloc` returned for this layout.
    pub fn dealloc(&self, block: *const u8, layout: Layout) {
        let first = (block as usize - self.start() as usize) / CHUNK;
        self.release(first..first + chunks_of(layout));
    }

    /// Claims all chunks, or none and returns the first that is in use.
    fn claim(&self, chunks: Range<usize>) -> Result<(), usize> {
        let first = chunks.start;
        for chunk in chunks {
            let (word, bit) = self.place(chunk);
            if word.load(Relaxed) & bit != 0 || word.fetch_or(bit, AcqRel) & bit != 0 {
                self.release(first..chunk);
                return Err(chunk);
            }
        }
        Ok(())
    }

    fn release(&self, chunks: Range<usize>) {
        for chunk in chunks {
            let (word, bit) = self.place(chunk);
            word.fetch_and(!bit, AcqRel);
        }
    }

    fn place(&self, chunk: usize) -> (&AtomicU64, u64) {
        (
            &self.used[chunk / CHUNKS_PER_WORD],
            1 << (chunk % CHUNKS_PER_WORD),
        )
    }

    fn start(&self) -> *mut u8 {
        self.chunks.0.get().cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: usize = 4096;

    #[test]
    fn the_reserve_serves_alone_in_code_without_the_backend() {
        assert!(!serves_alone() && without_backend(serves_alone) && !serves_alone());
    }

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 16).unwrap()
    }

    #[test]
    fn blocks_are_distinct_and_aligned_until_none_fits() {
        let reserve = Reserve::<1>::new();
        let first = reserve.alloc(Layout::from_size_align(1, 1).unwrap());
        let second = reserve.alloc(layout(100));
        assert_eq!((first as usize % CHUNK, second as usize % CHUNK), (0, 0));
        assert_eq!(second as usize - first as usize, CHUNK);
        assert!(reserve.owns(first) && reserve.owns(second));
        assert!(!reserve.owns((&raw const reserve.used).cast()));
        assert!(reserve.alloc(layout(ALL - 3 * CHUNK + 1)).is_null());
        assert!(!reserve.alloc(layout(ALL - 3 * CHUNK)).is_null());
        assert!(reserve.alloc(layout(1)).is_null());
    }

    #[test]
    fn an_alignment_above_a_chunk_is_refused() {
        let wide = Layout::from_size_align(1, 2 * CHUNK).unwrap();
        assert!(Reserve::<1>::new().alloc(wide).is_null());
    }

    #[test]
    fn a_freed_block_is_reused_while_a_later_block_is_live() {
        let reserve = Reserve::<1>::new();
        let (first, _kept) = (reserve.alloc(layout(500)), reserve.alloc(layout(10)));
        reserve.dealloc(first, layout(500));
        assert_eq!(reserve.alloc(layout(512)), first);
    }

    #[test]
    fn threads_never_share_a_block() {
        let reserve = Reserve::<2>::new();
        let fill_and_check = |seed: u8| {
            for size in (0..1000).cycle().take(20_000) {
                let block = reserve.alloc(layout(size));
                if block.is_null() {
                    continue;
                }
                // SAFETY: the block has `size` bytes, which only this thread uses.
                let bytes = unsafe { std::slice::from_raw_parts_mut(block, size) };
                bytes.fill(seed);
                assert!(bytes.iter().all(|byte| *byte == seed));
                reserve.dealloc(block, layout(size));
            }
        };
        std::thread::scope(|scope| {
            for seed in 1..=4 {
                scope.spawn(move || fill_and_check(seed));
            }
        });
        assert!(!reserve.alloc(layout(2 * ALL)).is_null());
    }
}
