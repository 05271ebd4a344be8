//! Free spans of one kind, by length (best fit in constant time) and by age.

use super::table::Table;
use super::unit::{flag, UnitId};

/// Lengths up to this have a bin each; longer ones share eight bins per doubling.
const EXACT: u32 = 64;
const BINS: usize = 256;
/// How many spans of a shared bin are looked at before the next bin, whose spans all fit.
const LOOKS: usize = 8;

fn bin_of(len: u32) -> usize {
    if len <= EXACT {
        return len as usize;
    }
    let top = len.ilog2();
    let eighth = (len >> (top - 3)) & 7;
    (EXACT + 1 + (top - 6) * 8 + eighth) as usize
}

/// Runs up to this length are rather taken whole than patched together: those cost more at free.
const WHOLE: u32 = 4;

/// No mapping ends inside the run, as far as is known.
fn is_whole(table: &Table, head: UnitId, units: u32) -> bool {
    (head + 1..head + units).all(|id| !table.unit(id).has(flag::SEAM))
}

pub struct Pool {
    heads: [UnitId; BINS],
    /// One bit per bin that is not empty.
    filled: [u64; BINS / 64],
    oldest: UnitId,
    newest: UnitId,
    units: u64,
}

impl Pool {
    pub const fn new() -> Self {
        Pool {
            heads: [0; BINS],
            filled: [0; BINS / 64],
            oldest: 0,
            newest: 0,
            units: 0,
        }
    }

    pub fn units(&self) -> u64 {
        self.units
    }

    /// Walks from here by `Unit::newer`.
    pub fn oldest(&self) -> UnitId {
        self.oldest
    }

    /// Adds a span, as the youngest.
    pub fn insert(&mut self, table: &Table, head: UnitId, len: u32) {
        self.insert_after(table, head, len, self.newest);
    }

    /// Adds a span whose neighbour in age is `elder` (0: it is the oldest).
    pub fn insert_after(&mut self, table: &Table, head: UnitId, len: u32, elder: UnitId) {
        let unit = table.unit(head);
        let bin = bin_of(len);
        if let Some(first) = self.heads.get_mut(bin) {
            unit.set_prev(0);
            unit.set_next(*first);
            if *first != 0 {
                table.unit(*first).set_prev(head);
            }
            *first = head;
        }
        self.mark(bin, true);
        let younger = if elder == 0 {
            self.oldest
        } else {
            table.unit(elder).newer()
        };
        unit.set_older(elder);
        unit.set_newer(younger);
        if elder == 0 {
            self.oldest = head;
        } else {
            table.unit(elder).set_newer(head);
        }
        if younger == 0 {
            self.newest = head;
        } else {
            table.unit(younger).set_older(head);
        }
        self.units += u64::from(len);
    }

    pub fn remove(&mut self, table: &Table, head: UnitId, len: u32) {
        let unit = table.unit(head);
        let bin = bin_of(len);
        let (prev, next) = (unit.prev(), unit.next());
        if next != 0 {
            table.unit(next).set_prev(prev);
        }
        if prev != 0 {
            table.unit(prev).set_next(next);
        } else if let Some(first) = self.heads.get_mut(bin) {
            *first = next;
            if next == 0 {
                self.mark(bin, false);
            }
        }
        let (older, newer) = (unit.older(), unit.newer());
        if older == 0 {
            self.oldest = newer;
        } else {
            table.unit(older).set_newer(newer);
        }
        if newer == 0 {
            self.newest = older;
        } else {
            table.unit(newer).set_older(older);
        }
        self.units -= u64::from(len);
    }

    /// The span to carve `units` from: of that length, else a little longer, else longer.
    pub fn best_fit(&self, table: &Table, units: u32) -> Option<(UnitId, u32)> {
        let bin = bin_of(units);
        let mut head = self.head(bin);
        let mut patched = None;
        for _ in 0..LOOKS {
            if head == 0 {
                break;
            }
            let len = table.unit(head).len();
            if len >= units && (units > WHOLE || is_whole(table, head, units)) {
                return Some((head, len));
            }
            if len >= units {
                patched = patched.or(Some((head, len)));
            }
            head = table.unit(head).next();
        }
        if patched.is_some() {
            return patched;
        }
        let head = self.head(self.filled_from(bin + 1)?);
        Some((head, table.unit(head).len()))
    }

    /// A span of the fullest bin.
    pub fn largest(&self, table: &Table) -> Option<(UnitId, u32)> {
        let (word, bits) = self
            .filled
            .iter()
            .enumerate()
            .rev()
            .find(|(_, bits)| **bits != 0)?;
        let head = self.head(word * 64 + bits.ilog2() as usize);
        Some((head, table.unit(head).len()))
    }

    fn head(&self, bin: usize) -> UnitId {
        self.heads.get(bin).copied().unwrap_or(0)
    }

    fn filled_from(&self, bin: usize) -> Option<usize> {
        let mut word = bin / 64;
        let mut bits = self.filled.get(word)? & (!0 << (bin % 64));
        while bits == 0 {
            word += 1;
            bits = *self.filled.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }

    fn mark(&mut self, bin: usize, filled: bool) {
        if let Some(word) = self.filled.get_mut(bin / 64) {
            let bit = 1 << (bin % 64);
            *word = if filled { *word | bit } else { *word & !bit };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_grow_with_length_and_stay_in_the_array() {
        let mut last = 0;
        for shift in 0..28 {
            for len in [1u32 << shift, (1 << shift) + (1 << shift) / 2] {
                let bin = bin_of(len);
                assert!(bin >= last && bin < BINS, "length {len} has bin {bin}");
                last = bin;
            }
        }
    }

    #[test]
    fn neighbouring_lengths_share_a_bin_only_when_long() {
        assert_ne!(bin_of(63), bin_of(64));
        assert_ne!(bin_of(64), bin_of(65));
        assert_eq!(bin_of(65), bin_of(66));
    }
}
