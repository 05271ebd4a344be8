//! The origins of large blocks of the backend. The recycler keeps those of its own blocks.
//!
//! The table has a fixed size and no lock, because nothing may allocate here. A block is in the one
//! bucket of its address; if that is full, the block has no site. Only the owner of a block inserts
//! and removes it, while no other thread can have the address.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, AtomicUsize};

const BUCKETS: usize = 4096;
/// Their addresses fill two cache lines.
const SLOTS: usize = 16;
const NO_BLOCK: usize = 0;
/// A thread is filling the slot. After a fork the slot may stay so in the child, and is lost.
const TAKEN: usize = 1;

static TABLE: Table<BUCKETS> = Table::new();

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapBlock {
    pub start: usize,
    pub bytes: usize,
    pub origin: u64,
}

/// Called by the owner of a block that the backend has just allocated.
pub fn keep(block: HeapBlock) {
    TABLE.keep(block);
}

/// Called by the owner before the backend frees the block. Returns the record.
#[inline]
pub fn forget(start: usize) -> Option<HeapBlock> {
    TABLE.forget(start)
}

/// For reports: allocates. Blocks that are allocated or freed meanwhile may be missing.
pub fn live_blocks() -> Vec<HeapBlock> {
    TABLE.blocks().collect()
}

struct Table<const N: usize> {
    count: AtomicUsize,
    buckets: [Bucket; N],
}

#[repr(align(64))]
struct Bucket {
    starts: [AtomicUsize; SLOTS],
    bytes: [AtomicUsize; SLOTS],
    origins: [AtomicU64; SLOTS],
}

impl Bucket {
    const fn new() -> Self {
        Bucket {
            starts: [const { AtomicUsize::new(NO_BLOCK) }; SLOTS],
            bytes: [const { AtomicUsize::new(0) }; SLOTS],
            origins: [const { AtomicU64::new(0) }; SLOTS],
        }
    }

    fn slots(&self) -> impl Iterator<Item = (&AtomicUsize, &AtomicUsize, &AtomicU64)> {
        let values = self.bytes.iter().zip(&self.origins);
        let slots = self.starts.iter().zip(values);
        slots.map(|(start, (bytes, origin))| (start, bytes, origin))
    }
}

impl<const N: usize> Table<N> {
    const fn new() -> Self {
        Table {
            count: AtomicUsize::new(0),
            buckets: [const { Bucket::new() }; N],
        }
    }

    /// Addresses of blocks are multiples of 16.
    fn bucket(&self, start: usize) -> Option<&Bucket> {
        let mixed = (start as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.buckets.get((mixed >> 32) as usize % N)
    }

    fn keep(&self, block: HeapBlock) {
        // A block that was freed by a private name of libc or jemalloc is still in the table.
        self.forget(block.start);
        let slots = self.bucket(block.start).into_iter().flat_map(Bucket::slots);
        for (start, bytes, origin) in slots {
            let claim = start.compare_exchange(NO_BLOCK, TAKEN, Acquire, Relaxed);
            if claim.is_ok() {
                self.count.fetch_add(1, Relaxed);
                bytes.store(block.bytes, Relaxed);
                origin.store(block.origin, Relaxed);
                start.store(block.start, Release);
                return;
            }
        }
    }

    #[inline]
    fn forget(&self, start: usize) -> Option<HeapBlock> {
        // The owner of a block sees a count that includes it.
        if self.count.load(Relaxed) == 0 {
            return None;
        }
        self.take_out(start)
    }

    fn take_out(&self, wanted: usize) -> Option<HeapBlock> {
        let mut slots = self.bucket(wanted).into_iter().flat_map(Bucket::slots);
        let (start, bytes, origin) = slots.find(|slot| slot.0.load(Acquire) == wanted)?;
        let block = HeapBlock {
            start: wanted,
            bytes: bytes.load(Relaxed),
            origin: origin.load(Relaxed),
        };
        let claim = start.compare_exchange(wanted, NO_BLOCK, AcqRel, Relaxed);
        claim.ok().map(|_| {
            self.count.fetch_sub(1, Relaxed);
            block
        })
    }

    fn blocks(&self) -> impl Iterator<Item = HeapBlock> + '_ {
        let any = self.count.load(Relaxed) != 0;
        let slots = self.buckets.iter().filter(move |_| any);
        slots
            .flat_map(Bucket::slots)
            .filter_map(|(start, bytes, origin)| {
                let block = HeapBlock {
                    start: start.load(Acquire),
                    bytes: bytes.load(Relaxed),
                    origin: origin.load(Relaxed),
                };
                let is_there = block.start > TAKEN && start.load(Acquire) == block.start;
                is_there.then_some(block)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(start: usize) -> HeapBlock {
        HeapBlock {
            start,
            bytes: start * 2,
            origin: start as u64 + 7,
        }
    }

    #[test]
    fn block_is_listed_until_forgotten_and_returned_once() {
        let table = Table::<4>::new();
        assert_eq!(table.forget(0x1000), None);
        table.keep(block(0x1000));
        table.keep(block(0x2010));
        let mut starts: Vec<_> = table.blocks().map(|one| one.start).collect();
        starts.sort_unstable();
        assert_eq!(starts, [0x1000, 0x2010]);
        assert_eq!(table.forget(0x1000), Some(block(0x1000)));
        assert_eq!(table.forget(0x1000), None);
        assert_eq!(table.blocks().collect::<Vec<_>>(), [block(0x2010)]);
    }

    #[test]
    fn address_kept_twice_is_listed_once() {
        let table = Table::<1>::new();
        table.keep(block(0x1000));
        let again = HeapBlock {
            bytes: 5,
            ..block(0x1000)
        };
        table.keep(again);
        assert_eq!(table.blocks().collect::<Vec<_>>(), [again]);
        assert_eq!(table.count.load(Relaxed), 1);
    }

    #[test]
    fn full_bucket_refuses_a_block_until_another_is_forgotten() {
        let table = Table::<1>::new();
        let starts = (1..=SLOTS + 1).map(|number| number << 12);
        starts.clone().for_each(|start| table.keep(block(start)));
        assert_eq!(table.blocks().count(), SLOTS);
        assert_eq!(table.forget((SLOTS + 1) << 12), None);
        assert!(table.forget(1 << 12).is_some());
        table.keep(block((SLOTS + 1) << 12));
        assert!(table.forget((SLOTS + 1) << 12).is_some());
        assert_eq!(table.count.load(Relaxed), SLOTS - 1);
    }

    #[test]
    fn concurrent_keep_and_forget_lose_no_block() {
        let table = Table::<2>::new();
        std::thread::scope(|scope| {
            for thread in 1..=4usize {
                let table = &table;
                scope.spawn(move || {
                    for number in 0..if cfg!(miri) { 20 } else { 20_000 } {
                        let own = block(thread << 20 | (number % 7 + 1) << 12);
                        table.keep(own);
                        assert_eq!(table.forget(own.start), Some(own));
                    }
                });
            }
        });
        assert_eq!(table.count.load(Relaxed), 0);
        assert_eq!(table.blocks().count(), 0);
    }
}
