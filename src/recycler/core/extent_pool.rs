//! Free extents of one kind, by length (best fit in constant time) and by age.

use crate::core::extent_list::{ByAge, ByBin, List};
use crate::core::pagemap::Pagemap;
use crate::core::unit::{Flags, Unit, UnitId};

/// Lengths up to this have a bin each; longer ones share eight bins per doubling.
const EXACT: u32 = 64;
const BINS: usize = 256;
/// How many extents of a shared bin are looked at before the next bin, whose extents all fit.
const MAX_PROBES: usize = 8;

pub fn bin_of(len: u32) -> usize {
    if len <= EXACT {
        return len as usize;
    }
    let top = len.ilog2();
    let eighth = (len >> (top - 3)) & 7;
    (EXACT + 1 + (top - 6) * 8 + eighth) as usize
}

/// Extents up to this length are rather taken whole than patched together: those cost more at free.
pub const WHOLE: u32 = 4;

/// No mapping ends inside the extent, as far as is known.
fn is_one_vma(pagemap: &Pagemap, head: UnitId, units: u32) -> bool {
    (head + 1..head + units).all(|id| !pagemap.unit(id).has(Flags::VMA_BOUNDARY))
}

pub struct Pool {
    bins: [List<ByBin>; BINS],
    /// One bit per bin that is not empty.
    filled: [u64; BINS / 64],
    ages: List<ByAge>,
    units: u64,
}

impl Pool {
    pub const fn new() -> Self {
        Pool {
            bins: [const { List::new() }; BINS],
            filled: [0; BINS / 64],
            ages: List::new(),
            units: 0,
        }
    }

    pub fn units(&self) -> u64 {
        self.units
    }

    pub fn ages(&self) -> &List<ByAge> {
        &self.ages
    }

    pub fn oldest(&self) -> Option<UnitId> {
        self.ages.first()
    }

    /// Adds an extent, as the youngest.
    pub fn insert(&mut self, pagemap: &Pagemap, head: UnitId, len: u32) {
        let unit = pagemap.unit(head);
        self.ages.push_last(pagemap, head, unit);
        self.count_in(pagemap, head, unit, len);
    }

    /// Adds an extent whose neighbour in age is `elder` (None: it is the oldest).
    pub fn insert_after(
        &mut self,
        pagemap: &Pagemap,
        head: UnitId,
        len: u32,
        elder: Option<UnitId>,
    ) {
        let unit = pagemap.unit(head);
        self.ages.insert_after(pagemap, head, unit, elder);
        self.count_in(pagemap, head, unit, len);
    }

    fn count_in(&mut self, pagemap: &Pagemap, head: UnitId, unit: &Unit, len: u32) {
        let bin = bin_of(len);
        if let Some(list) = self.bins.get_mut(bin) {
            list.push_first(pagemap, head, unit);
        }
        self.mark(bin, true);
        self.units += u64::from(len);
    }

    /// Answers its neighbour in age; None: it was the oldest.
    pub fn remove(&mut self, pagemap: &Pagemap, head: UnitId, len: u32) -> Option<UnitId> {
        let (bin, unit) = (bin_of(len), pagemap.unit(head));
        if let Some(list) = self.bins.get_mut(bin) {
            list.remove(pagemap, unit);
            if list.first().is_none() {
                self.mark(bin, false);
            }
        }
        self.units -= u64::from(len);
        self.ages.remove(pagemap, unit)
    }

    /// The extent to carve `units` from: of that length, else a little longer, else longer.
    pub fn best_fit(&self, pagemap: &Pagemap, units: u32) -> Option<(UnitId, u32)> {
        let bin = bin_of(units);
        let mut head = self.head(bin);
        let mut multi_vma_frees = None;
        for _ in 0..MAX_PROBES {
            let Some(here) = head else {
                break;
            };
            let len = pagemap.unit(here).len();
            if len >= units && (units > WHOLE || is_one_vma(pagemap, here, units)) {
                return Some((here, len));
            }
            if len >= units {
                multi_vma_frees = multi_vma_frees.or(Some((here, len)));
            }
            head = List::<ByBin>::after(pagemap, here);
        }
        if multi_vma_frees.is_some() {
            return multi_vma_frees;
        }
        let head = self.head(self.filled_from(bin + 1)?)?;
        Some((head, pagemap.unit(head).len()))
    }

    /// An extent of the fullest bin.
    pub fn largest(&self, pagemap: &Pagemap) -> Option<(UnitId, u32)> {
        let (word, bits) = self
            .filled
            .iter()
            .enumerate()
            .rev()
            .find(|(_, bits)| **bits != 0)?;
        let head = self.head(word * 64 + bits.ilog2() as usize)?;
        Some((head, pagemap.unit(head).len()))
    }

    pub fn head(&self, bin: usize) -> Option<UnitId> {
        self.bins.get(bin)?.first()
    }

    pub fn filled_from(&self, bin: usize) -> Option<usize> {
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
    fn a_doubling_of_long_lengths_has_eight_bins_in_their_order() {
        for top in 6..12 {
            let eighth = 1u32 << (top - 3);
            let first = bin_of((1 << top) + 1);
            let bins = (1..8).map(|part| bin_of((1 << top) + part * eighth));
            assert!(bins.eq(first + 1..first + 8), "from {}", 1 << top);
        }
    }

    #[test]
    fn neighbouring_lengths_share_a_bin_only_when_long() {
        assert_ne!(bin_of(63), bin_of(64));
        assert_ne!(bin_of(64), bin_of(65));
        assert_eq!(bin_of(65), bin_of(66));
    }
}
