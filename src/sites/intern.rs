//! A lock-free table of fixed size that numbers hashes from 1, and keeps one value for each. One exchange claims a slot,
//! and the thread that claimed it stores the value. Values never change.
//!
//! Two values are equal if 48 bits of their hashes are. Among the few thousand that fit, a
//! collision is less likely than a bit error in memory.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release,
};

/// `N` hashes fit, a power of two below 2^16.
pub struct Interned<T, const N: usize> {
    /// 48 upper bits of the hash and 16 of the number; 0: free.
    slots: [[AtomicU64; 2]; N],
    given: AtomicU32,
    /// Of the numbers from 1.
    values: [Value<T>; N],
}

struct Value<T> {
    is_set: AtomicBool,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: one thread writes a value, the one that claimed its number. `is_set` then publishes it.
unsafe impl<T: Send + Sync> Sync for Value<T> {}

/// For hashes that may get every number.
pub const ANY: usize = usize::MAX;

const NUMBER_BITS: u32 = 16;
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;

impl<T: Copy, const N: usize> Interned<T, N> {
    pub const fn new() -> Self {
        assert!(N.is_power_of_two() && N < 1 << NUMBER_BITS);
        Interned {
            slots: [const { [const { AtomicU64::new(0) }; 2] }; N],
            given: AtomicU32::new(0),
            values: [const {
                Value {
                    is_set: AtomicBool::new(false),
                    value: UnsafeCell::new(MaybeUninit::uninit()),
                }
            }; N],
        }
    }

    /// The number of a hash among the first `room`; 0 if these are taken. A new one gets the value of `make`.
    #[inline]
    pub fn number(&self, room: usize, hash: u64, make: impl FnOnce() -> Option<T>) -> u32 {
        let tag = (hash | 1 << 63) & !NUMBER_MASK;
        let first = (hash >> NUMBER_BITS) as usize;
        let slots = self.slots.as_flattened();
        let mut mine = 0;
        for step in 0..slots.len() {
            let Some(slot) = slots.get(first.wrapping_add(step) & (slots.len() - 1)) else {
                break;
            };
            let mut seen = slot.load(Acquire);
            if seen == 0 {
                if mine == 0 {
                    mine = self.next(room);
                }
                if mine == 0 {
                    break;
                }
                match slot.compare_exchange(0, tag | u64::from(mine), AcqRel, Acquire) {
                    Ok(_) => {
                        self.set(mine, make());
                        return mine;
                    }
                    Err(theirs) => seen = theirs,
                }
            }
            if seen & !NUMBER_MASK == tag {
                return (seen & NUMBER_MASK) as u32;
            }
        }
        0
    }

    /// The next number; 0 if none is left. It stays unused if another thread claims the slot first.
    fn next(&self, room: usize) -> u32 {
        let more = |given: u32| ((given as usize) < room.min(N)).then_some(given + 1);
        let given = self.given.fetch_update(Relaxed, Relaxed, more);
        given.map_or(0, |given| given + 1)
    }

    /// Called once for each number.
    fn set(&self, number: u32, value: Option<T>) {
        if let Some((cell, value)) = self.cell(number).zip(value) {
            // SAFETY: only this thread has claimed the number, and nothing reads the value before `is_set`.
            unsafe { (*cell.value.get()).write(value) };
            cell.is_set.store(true, Release);
        }
    }

    /// `None`: there is no such number, it has no value, or a thread is making it.
    pub fn get(&self, number: u32) -> Option<T> {
        let cell = self.cell(number)?;
        // SAFETY: `is_set`, so the value is written and never changes.
        cell.is_set
            .load(Acquire)
            .then(|| unsafe { (*cell.value.get()).assume_init() })
    }

    fn cell(&self, number: u32) -> Option<&Value<T>> {
        self.values.get((number as usize).checked_sub(1)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number<const N: usize>(table: &Interned<u64, N>, room: usize, n: u64) -> u32 {
        table.number(room, n << 30, || Some(n))
    }

    #[test]
    fn hash_keeps_its_number_and_full_table_refuses_new_ones() {
        let table = Interned::<u64, 4>::new();
        for n in 1..=4 {
            assert_eq!(number(&table, ANY, n), n as u32);
        }
        assert_eq!(number(&table, ANY, 3), 3);
        assert_eq!(number(&table, ANY, 5), 0);
    }

    #[test]
    fn first_numbers_leave_room_for_other_hashes() {
        let table = Interned::<u64, 4>::new();
        let numbers = [(2, 1), (2, 2), (2, 3), (ANY, 3), (2, 3)];
        let numbers = numbers.map(|(room, n)| number(&table, room, n));
        assert_eq!(numbers, [1, 2, 0, 3, 3]);
    }

    #[test]
    fn a_number_has_the_value_that_was_made_for_it() {
        let table = Interned::<u64, 4>::new();
        assert_eq!((table.get(0), table.get(1)), (None, None));
        number(&table, ANY, 7);
        table.number(ANY, 8 << 30, || None);
        table.number(ANY, 7 << 30, || unreachable!());
        let values = [0, 1, 2, 3, u32::MAX].map(|number| table.get(number));
        assert_eq!(values, [None, Some(7), None, None, None]);
    }

    #[test]
    fn threads_get_equal_numbers_for_equal_hashes() {
        static TABLE: Interned<u64, 512> = Interned::new();
        let numbers = || -> Vec<u32> { (1..=300).map(|n| number(&TABLE, ANY, n)).collect() };
        let all: Vec<Vec<u32>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(numbers)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert!(all.iter().all(|one| *one == all[0] && !one.contains(&0)));
        let distinct: std::collections::HashSet<_> = all[0].iter().collect();
        assert_eq!(distinct.len(), 300);
        let values = all[0].iter().map(|&number| TABLE.get(number));
        assert!(values.eq((1..=300).map(Some)));
    }
}
