//! A table of fixed size that numbers what it has not seen, without a lock: a slot is claimed by one
//! exchange, and whoever claimed it fills in what belongs to the number.
//!
//! Two things are the same when 48 bits of their hashes are: among the thousands that fit, a mistake is
//! rarer than a bit that flips in memory.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// `SLOTS` is a power of two of at most 2^16; half as many fit.
pub struct Numbers<const SLOTS: usize> {
    /// The upper 48 bits are of the hash, the lower ones the number; 0: free.
    slots: [AtomicU64; SLOTS],
    given: AtomicU32,
}

const NUMBER_BITS: u32 = 16;
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Known(u32),
    /// The caller is the first, and fills it in.
    New(u32),
    Full,
}

impl<const SLOTS: usize> Numbers<SLOTS> {
    pub const CAPACITY: usize = SLOTS / 2;

    pub const fn new() -> Self {
        assert!(SLOTS.is_power_of_two() && SLOTS <= 1 << NUMBER_BITS);
        Numbers {
            slots: [const { AtomicU64::new(0) }; SLOTS],
            given: AtomicU32::new(0),
        }
    }

    /// The number of a hash, from 1.
    #[inline]
    pub fn of(&self, hash: u64) -> Found {
        let tag = (hash | 1 << 63) & !NUMBER_MASK;
        let first = (hash >> NUMBER_BITS) as usize;
        let mut mine = 0;
        for step in 0..SLOTS {
            let at = first.wrapping_add(step) & (SLOTS - 1);
            let Some(slot) = self.slots.get(at) else {
                break;
            };
            let mut seen = slot.load(Ordering::Acquire);
            if seen == 0 {
                if mine == 0 {
                    mine = self.next();
                }
                if mine == 0 {
                    break;
                }
                let claim = tag | u64::from(mine);
                match slot.compare_exchange(0, claim, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => return Found::New(mine),
                    Err(theirs) => seen = theirs,
                }
            }
            if seen & !NUMBER_MASK == tag {
                return Found::Known((seen & NUMBER_MASK) as u32);
            }
        }
        Found::Full
    }

    /// 0 when all are given. One that is lost to another thread stays without a meaning.
    fn next(&self) -> u32 {
        let room = Self::CAPACITY as u32;
        if self.given.load(Ordering::Relaxed) >= room {
            return 0;
        }
        let number = self.given.fetch_add(1, Ordering::Relaxed) + 1;
        if number > room {
            0
        } else {
            number
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_keeps_its_number_and_a_full_table_says_so() {
        let table = Numbers::<8>::new();
        let hash = |n: u64| n << 40;
        for n in 1..=4 {
            assert_eq!(table.of(hash(n)), Found::New(n as u32));
        }
        assert_eq!(table.of(hash(3)), Found::Known(3));
        assert_eq!(table.of(hash(5)), Found::Full);
    }

    #[test]
    fn threads_agree_on_every_number() {
        static TABLE: Numbers<1024> = Numbers::new();
        let numbers = || -> Vec<u32> {
            (1..=300u64)
                .map(|n| match TABLE.of(n << 30) {
                    Found::Known(number) | Found::New(number) => number,
                    Found::Full => 0,
                })
                .collect()
        };
        let all: Vec<Vec<u32>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(numbers)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert!(all.iter().all(|one| *one == all[0] && !one.contains(&0)));
        let distinct: std::collections::HashSet<_> = all[0].iter().collect();
        assert_eq!(distinct.len(), 300);
    }
}
