//! Memory for the library's own Rust code where the system has none left.
//!
//! A program may answer NULL from malloc with less work; Rust's standard library ends the process. What ours asks for then,
//! some kilobytes for a marker or an answer, comes from here: static, and untouched until the first time.
//!
//! No lock: a thread that a fork leaves behind keeps what it had, and holds nobody up.

use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Relaxed};

const CHUNK: usize = 64;
const CHUNKS_PER_WORD: usize = u64::BITS as usize;

/// As aligned as a chunk is long.
#[repr(align(64))]
struct Aligned<T>(T);

/// `WORDS` times 4 KiB.
pub struct Reserve<const WORDS: usize> {
    chunks: Aligned<UnsafeCell<[[u8; CHUNK * CHUNKS_PER_WORD]; WORDS]>>,
    /// A bit for each chunk that somebody has.
    used: [AtomicU64; WORDS],
}

// SAFETY: a chunk is its owner's alone, who set its bit.
unsafe impl<const WORDS: usize> Sync for Reserve<WORDS> {}

/// An empty block has one, too.
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

    /// Null when there is no such room. The first fit.
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

    /// A block that came from `alloc` for this layout, once.
    pub fn dealloc(&self, block: *const u8, layout: Layout) {
        let first = (block as usize - self.start() as usize) / CHUNK;
        self.release(first..first + chunks_of(layout));
    }

    /// All of them, or the first that somebody has.
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

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 16).unwrap()
    }

    #[test]
    fn blocks_are_apart_and_aligned_until_none_fits() {
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
    fn no_block_is_aligned_beyond_a_chunk() {
        let wide = Layout::from_size_align(1, 2 * CHUNK).unwrap();
        assert!(Reserve::<1>::new().alloc(wide).is_null());
    }

    #[test]
    fn the_place_of_a_freed_block_is_free_whatever_is_left_behind_it() {
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
                // SAFETY: `size` bytes that nobody else has.
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
