//! A lock-free table of fixed size that numbers hashes from 1. One exchange claims a slot, and the
//! thread that claimed it stores the value for the number.
//!
//! Two values are equal if 48 bits of their hashes are. Among the few thousand that fit, a
//! collision is less likely than a bit error in memory.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// `SLOTS` is a power of two, at most 2^16. Half as many hashes fit.
pub struct Numbers<const SLOTS: usize> {
    /// 48 upper bits of the hash and 16 of the number; 0: free.
    slots: [AtomicU64; SLOTS],
    given: AtomicU32,
}

/// For hashes that may get every number.
pub const ANY: usize = usize::MAX;

const NUMBER_BITS: u32 = 16;
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Known(u32),
    New(u32),
    Full,
}

impl<const SLOTS: usize> Numbers<SLOTS> {
    const CAPACITY: usize = SLOTS / 2;

    pub const fn new() -> Self {
        assert!(SLOTS.is_power_of_two() && SLOTS <= 1 << NUMBER_BITS);
        Numbers {
            slots: [const { AtomicU64::new(0) }; SLOTS],
            given: AtomicU32::new(0),
        }
    }

    /// The number of a hash among the first `room`; 0 if these are taken. `store` stores the value of a new one.
    #[inline]
    pub fn number(&self, room: usize, hash: u64, store: impl FnOnce(u32)) -> u32 {
        match self.find(room, hash) {
            Found::Known(number) => number,
            Found::New(number) => {
                store(number);
                number
            }
            Found::Full => 0,
        }
    }

    #[inline]
    fn find(&self, room: usize, hash: u64) -> Found {
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
                    mine = self.next(room);
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

    /// The next number; 0 if none is left. It stays unused if another thread claims the slot first.
    fn next(&self, room: usize) -> u32 {
        let room = room.min(Self::CAPACITY) as u32;
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
    fn hash_keeps_its_number_and_full_table_refuses_new_ones() {
        let table = Numbers::<8>::new();
        let hash = |n: u64| n << 40;
        for n in 1..=4 {
            assert_eq!(table.find(ANY, hash(n)), Found::New(n as u32));
        }
        assert_eq!(table.find(ANY, hash(3)), Found::Known(3));
        assert_eq!(table.find(ANY, hash(5)), Found::Full);
    }

    #[test]
    fn first_numbers_leave_room_for_other_hashes() {
        let table = Numbers::<8>::new();
        let hash = |n: u64| n << 40;
        assert_eq!(table.find(2, hash(1)), Found::New(1));
        assert_eq!(table.find(2, hash(2)), Found::New(2));
        assert_eq!(table.find(2, hash(3)), Found::Full);
        assert_eq!(table.find(ANY, hash(3)), Found::New(3));
        assert_eq!(table.find(2, hash(3)), Found::Known(3));
    }

    #[test]
    fn threads_get_equal_numbers_for_equal_hashes() {
        static TABLE: Numbers<1024> = Numbers::new();
        let numbers = || -> Vec<u32> {
            (1..=300u64)
                .map(|n| match TABLE.find(ANY, n << 30) {
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
