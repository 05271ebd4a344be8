//! The origins of blocks of the backend: the large ones, and the sampled ones of the others. The recycler
//! keeps those of its own blocks.
//!
//! The table has a fixed size and no lock, because nothing may allocate here. A block is in the one
//! bucket of its address; if that is full, the block is counted as lost. Only the owner of a block
//! inserts and removes it, while no other thread can have the address. A filter answers for most
//! blocks that they are not in the table.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{fence, AtomicU64, AtomicU8, AtomicUsize};

const BUCKETS: usize = 2048;
/// Half of all slots can be used before one bucket in ten thousand is full.
const SLOTS: usize = 32;
/// Each cell stands for 16 bytes of every MiB. Two blocks of 8 bytes of jemalloc may share one.
const CELLS: usize = 1 << 16;
const NO_BLOCK: usize = 0;
/// A thread is filling the slot. After a fork the slot may stay so in the child, and is lost.
const TAKEN: usize = 1;

pub static BLOCKS: Table<BUCKETS> = Table::new();

/// A live block that is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub start: usize,
    pub bytes: usize,
    pub origin: Origin,
    /// Small: chosen at random, and stands for others.
    pub is_sample: bool,
}

pub const NO_ROUND: i32 = -1;

/// The site and the round of an allocation. The recycler keeps it as one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// 0: allocated before sites were on, or the table is full.
    pub site: u32,
    pub round: Option<i32>,
}

impl Origin {
    pub fn to_word(self) -> u64 {
        let round = self.round.unwrap_or(NO_ROUND) as u32;
        u64::from(self.site) << 32 | u64::from(round.wrapping_add(1))
    }

    pub fn from_word(word: u64) -> Origin {
        let round = (word as u32).wrapping_sub(1) as i32;
        Origin {
            site: (word >> 32) as u32,
            round: (round >= 0).then_some(round),
        }
    }
}

pub struct Table<const N: usize> {
    filter: Filter,
    lost: AtomicUsize,
    buckets: [Bucket; N],
}

/// The number of blocks in the table for each cell. A cell that reaches the maximum keeps it.
struct Filter([AtomicU8; CELLS]);

impl Filter {
    #[inline(always)]
    fn cell(&self, start: usize) -> Option<&AtomicU8> {
        self.0.get(start >> 4 & (CELLS - 1))
    }

    /// The owner of a block that is in the table sees it counted.
    #[inline(always)]
    fn may_have(&self, start: usize) -> bool {
        self.cell(start).is_some_and(|cell| cell.load(Relaxed) != 0)
    }

    /// `change` adds or subtracts.
    fn update(&self, start: usize, change: fn(u8, u8) -> Option<u8>) {
        if let Some(cell) = self.cell(start) {
            let new = |count| change(count, 1).filter(|_| count != u8::MAX);
            let _ = cell.fetch_update(Relaxed, Relaxed, new);
        }
    }
}

#[repr(align(64))]
struct Bucket {
    starts: [AtomicUsize; SLOTS],
    records: [Record; SLOTS],
}

/// A block without its start.
struct Record {
    /// The bytes, doubled; odd for a sample.
    bytes: AtomicUsize,
    origin: AtomicU64,
}

impl Record {
    fn store(&self, block: &Block) {
        let is_sample = usize::from(block.is_sample);
        self.bytes.store(block.bytes << 1 | is_sample, Relaxed);
        self.origin.store(block.origin.to_word(), Relaxed);
    }

    /// The block, if its words did not change meanwhile.
    fn block(&self, start: usize) -> Block {
        let bytes = self.bytes.load(Relaxed);
        Block {
            start,
            bytes: bytes >> 1,
            origin: Origin::from_word(self.origin.load(Relaxed)),
            is_sample: bytes & 1 != 0,
        }
    }
}

impl Bucket {
    const fn new() -> Self {
        Bucket {
            starts: [const { AtomicUsize::new(NO_BLOCK) }; SLOTS],
            records: [const {
                Record {
                    bytes: AtomicUsize::new(0),
                    origin: AtomicU64::new(0),
                }
            }; SLOTS],
        }
    }

    fn slots(&self) -> impl Iterator<Item = (&AtomicUsize, &Record)> {
        self.starts.iter().zip(&self.records)
    }
}

impl<const N: usize> Table<N> {
    const fn new() -> Self {
        Table {
            filter: Filter([const { AtomicU8::new(0) }; CELLS]),
            lost: AtomicUsize::new(0),
            buckets: [const { Bucket::new() }; N],
        }
    }

    fn bucket(&self, start: usize) -> Option<&Bucket> {
        let mixed = (start as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.buckets.get((mixed >> 32) as usize % N)
    }

    /// Called by the owner of a block that the backend has just allocated.
    pub fn keep(&self, block: Block) {
        // A block that was freed by a private name of libc or jemalloc is still in the table.
        self.forget(block.start);
        let slots = self.bucket(block.start).into_iter().flat_map(Bucket::slots);
        for (start, record) in slots {
            let claim = start.compare_exchange(NO_BLOCK, TAKEN, Acquire, Relaxed);
            if claim.is_ok() {
                self.filter.update(block.start, u8::checked_add);
                // A reader of the words below sees that the slot was taken.
                fence(Release);
                record.store(&block);
                start.store(block.start, Release);
                return;
            }
        }
        self.lost.fetch_add(1, Relaxed);
    }

    /// False if the block is not in the table. One load.
    #[inline(always)]
    pub fn may_have(&self, start: usize) -> bool {
        self.filter.may_have(start)
    }

    /// Called by the owner before the backend frees the block. Returns the record.
    #[inline]
    pub fn forget(&self, start: usize) -> Option<Block> {
        if !self.may_have(start) {
            return None;
        }
        self.take_out(start)
    }

    #[cold]
    fn take_out(&self, wanted: usize) -> Option<Block> {
        let mut slots = self.bucket(wanted).into_iter().flat_map(Bucket::slots);
        let (start, record) = slots.find(|(start, _)| start.load(Acquire) == wanted)?;
        let block = record.block(wanted);
        start
            .compare_exchange(wanted, NO_BLOCK, AcqRel, Relaxed)
            .ok()?;
        self.filter.update(wanted, u8::checked_sub);
        Some(block)
    }

    /// Blocks that found no room so far.
    pub fn lost(&self) -> usize {
        self.lost.load(Relaxed)
    }

    /// Blocks that are allocated or freed meanwhile may be missing.
    pub fn live(&self) -> impl Iterator<Item = Block> + '_ {
        let slots = self.buckets.iter().flat_map(Bucket::slots);
        slots.filter_map(|(slot, record)| {
            let start = slot.load(Acquire);
            if start <= TAKEN {
                return None;
            }
            let block = record.block(start);
            fence(Acquire);
            (slot.load(Acquire) == start).then_some(block)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(start: usize) -> Block {
        Block {
            start,
            bytes: start * 2,
            origin: Origin {
                site: start as u32 + 7,
                round: Some(start as i32),
            },
            is_sample: start & (1 << 12) != 0,
        }
    }

    #[test]
    fn origin_survives_its_word_and_zero_is_no_site() {
        for round in [None, Some(0), Some(7), Some(i32::MAX)] {
            let origin = Origin { site: 4096, round };
            assert_eq!(Origin::from_word(origin.to_word()), origin);
        }
        let none = Origin {
            site: 0,
            round: None,
        };
        assert_eq!(Origin::from_word(0), none);
    }

    /// The sum of the filter's cells.
    fn counted<const N: usize>(table: &Table<N>) -> usize {
        let cells = table.filter.0.iter();
        cells.map(|cell| usize::from(cell.load(Relaxed))).sum()
    }

    #[test]
    fn full_cell_of_the_filter_never_denies_a_block() {
        let filter = Filter([const { AtomicU8::new(0) }; CELLS]);
        (0..300).for_each(|_| filter.update(0x1000, u8::checked_add));
        (0..300).for_each(|_| filter.update(0x1000, u8::checked_sub));
        assert!(filter.may_have(0x1000));
        assert!(!filter.may_have(0x1010));
        filter.update(0x1010, u8::checked_add);
        filter.update(0x1010, u8::checked_sub);
        assert!(!filter.may_have(0x1010));
    }

    #[test]
    fn block_is_listed_until_forgotten_and_returned_once() {
        let table = Table::<4>::new();
        assert_eq!(table.forget(0x1000), None);
        table.keep(block(0x1000));
        table.keep(block(0x2010));
        let mut starts: Vec<_> = table.live().map(|one| one.start).collect();
        starts.sort_unstable();
        assert_eq!(starts, [0x1000, 0x2010]);
        assert_eq!(table.forget(0x1000), Some(block(0x1000)));
        assert_eq!(table.forget(0x1000), None);
        assert_eq!(table.live().collect::<Vec<_>>(), [block(0x2010)]);
    }

    #[test]
    fn neighbours_of_8_bytes_are_two_blocks() {
        let table = Table::<4>::new();
        table.keep(block(0x1000));
        table.keep(block(0x1008));
        assert_eq!(table.forget(0x1000), Some(block(0x1000)));
        assert_eq!(table.forget(0x1008), Some(block(0x1008)));
        assert_eq!(counted(&table), 0);
    }

    #[test]
    fn address_kept_twice_is_listed_once() {
        let table = Table::<1>::new();
        table.keep(block(0x1000));
        let again = Block {
            bytes: 5,
            ..block(0x1000)
        };
        table.keep(again);
        assert_eq!(table.live().collect::<Vec<_>>(), [again]);
        assert_eq!(counted(&table), 1);
    }

    #[test]
    fn full_bucket_refuses_a_block_until_another_is_forgotten() {
        let table = Table::<1>::new();
        let starts = (1..=SLOTS + 1).map(|number| number << 12);
        starts.clone().for_each(|start| table.keep(block(start)));
        assert_eq!(table.live().count(), SLOTS);
        assert_eq!(table.lost(), 1);
        assert_eq!(table.forget((SLOTS + 1) << 12), None);
        assert!(table.forget(1 << 12).is_some());
        table.keep(block((SLOTS + 1) << 12));
        assert!(table.forget((SLOTS + 1) << 12).is_some());
        assert_eq!(counted(&table), SLOTS - 1);
    }

    /// Processors without the order of x86 need the fences; there this test can fail without them.
    #[test]
    fn reader_sees_no_words_of_another_block() {
        let table = Table::<1>::new();
        let rounds = if cfg!(miri) { 20 } else { 20_000 };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 1..=rounds {
                    let own = block((number % 7 + 1) << 12);
                    table.keep(own);
                    table.forget(own.start);
                }
            });
            for _ in 0..rounds {
                table
                    .live()
                    .for_each(|one| assert_eq!(one, block(one.start)));
            }
        });
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
        assert_eq!(counted(&table), 0);
        assert_eq!(table.live().count(), 0);
    }
}
