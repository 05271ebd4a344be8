//! Restores default attributes before a block's pages are reused: what a program changed with
//! `madvise`, `mlock`, `mprotect`, `mbind`, `userfaultfd` or `mmap` must not affect the next block.
//!
//! A reset takes eight or more system calls of 0.1 to 0.5 µs, so a probe of one call first proves
//! for most blocks that one is not needed. After a reset each VMA must be whole and without a file,
//! or the block is unmapped. Two changes stay undetected: a userfaultfd on exactly the units of one
//! VMA, and advice for huge pages on them, which is harmless.
//!
//! Invariants: an extent in the cache has default attributes. Only the block's owner calls this
//! code. A probe is sound only if the page beside the block is free before and after it.

use crate::core::pagemap::Unit;
use crate::core::unit::{address, Extent, Flags, Kind, UnitId};
use crate::os::vm::Vm;
use crate::state::recycler::Recycler;
use std::sync::atomic::Ordering::Relaxed;

/// The search for guard regions takes 6 µs per unit, so a free searches only blocks that lived this
/// long. A guard region in a shorter-lived block stays, and the next owner crashes when it writes
/// there.
const GUARD_MIN_AGE_MS: u32 = 1_000;
/// The search then costs about a thousandth of the block's life.
const GUARD_MIN_AGE_MS_PER_UNIT: u32 = 4;

/// Of the freed blocks of several VMAs, one in `RESETS_PER_UNIT * units` is unmapped, because a new
/// mapping merges with its neighbours. A reset takes 2 to 15 µs, and faulting in a unit again takes
/// 700 µs. So the unmapped block costs about as much as the resets before it.
const RESETS_PER_UNIT: u64 = 64;

/// The most blocks that the search for a free page skips on each side. A skip costs one or two
/// lookups of a unit. If no free page is found, a reset costs eight system calls and a probe of
/// each VMA.
const MAX_SKIPPED_BLOCKS: usize = 4;

/// The attributes of a freed block's mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreedAttributes {
    /// The pages may be cached.
    Default,
    /// An attribute cannot be restored: unmap the block.
    Altered,
    /// Several VMAs: unmap the block, so that the number of VMAs stays small.
    Fragmented,
}

/// The result of a probe of a whole block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// The block has default attributes.
    Pristine,
    /// The program may have changed an attribute.
    Unproven,
}

impl<V: Vm> Recycler<V> {
    /// Restores the attributes of a block that the caller frees.
    pub fn restore_freed_block(
        &self,
        extent: Extent,
        born_ms: u32,
        now_ms: u32,
    ) -> FreedAttributes {
        if is_searched_for_guards(extent, now_ms.wrapping_sub(born_ms)) {
            let _permit = self.probe_limit.acquire(|| self.vm.yield_now());
            // SAFETY: the program passed the block to `free`, and no pool holds it yet.
            unsafe { self.vm.remove_guards(extent.start(), extent.bytes()) };
        }
        let unproven = self.units_without_proof(extent);
        if unproven.len == 0 {
            return FreedAttributes::Default;
        }
        if self.has_boundary(extent, Flags::VMA_BOUNDARY) && self.count_multi_vma_free(extent) {
            return FreedAttributes::Fragmented;
        }
        let has_boundary = self.has_boundary(extent, Flags::ANY_BOUNDARY);
        let _permit = self.reset_limit.acquire(|| self.vm.yield_now());
        if self.reset_and_verify(extent, unproven, has_boundary) {
            FreedAttributes::Default
        } else {
            FreedAttributes::Altered
        }
    }

    /// Counts a freed block of several VMAs. True if it is to be unmapped, as one in
    /// `RESETS_PER_UNIT * units`. Otherwise blocks of mixed sizes would make each unit a VMA.
    fn count_multi_vma_free(&self, extent: Extent) -> bool {
        let multi_vma_frees = self.multi_vma_frees.fetch_add(1, Relaxed) + 1;
        multi_vma_frees.is_multiple_of(RESETS_PER_UNIT * u64::from(extent.len))
    }

    /// Resets the unproven units and probes again. False: an attribute remains.
    fn reset_and_verify(&self, extent: Extent, unproven: Extent, has_boundary: bool) -> bool {
        if !self.reset_and_count(unproven) {
            return false;
        }
        let is_restored = match self.range_with_spare_page(extent) {
            Some((start, bytes)) if !has_boundary => self.vm.is_one_vma(start, bytes),
            _ => self.are_whole_vmas(unproven),
        };
        if is_restored {
            return true;
        }
        // No call undoes advice on huge pages. The same advice for all units joins their VMAs.
        // SAFETY: the program passed the block to `free`, and no pool holds it yet.
        unsafe { self.vm.advise_huge(extent.start(), extent.bytes()) };
        for id in extent.units() {
            self.pagemap.unit(id).add_flags(Flags::HUGE);
        }
        self.pagemap.add_boundaries(extent, Flags::VMA_BOUNDARY);
        self.are_whole_vmas(extent)
    }

    /// Restores the attributes of units that `realloc` cut off a block. The caller has checked that
    /// the block was pristine, or that each of its parts between boundaries was one VMA. The same
    /// then holds for the cut units.
    pub fn restore_cut_units(&self, cut: Extent, block: Probe) -> bool {
        // SAFETY: the caller cut these units off, and they are `Busy`.
        unsafe { self.vm.remove_guards(cut.start(), cut.bytes()) };
        block == Probe::Pristine || self.reset_and_count(cut)
    }

    /// Restores the attributes of the pages behind the end of a block that `realloc` enlarges.
    pub fn restore_tail(&self, extent: Extent) -> bool {
        let bytes = self.block_bytes(extent);
        let (from, tail) = (extent.start() + bytes, extent.bytes() - bytes);
        if tail == 0 {
            return true;
        }
        self.resets.fetch_add(1, Relaxed);
        // SAFETY: the program passed the block to `realloc`, and the pages lie behind its end.
        unsafe {
            self.vm.remove_guards(from, tail);
            self.vm.reset_attributes(from, tail)
        }
    }

    /// False: the system refuses, or the extent maps a file or is shared.
    fn reset_and_count(&self, extent: Extent) -> bool {
        self.resets.fetch_add(1, Relaxed);
        // SAFETY: the program passed the block to `free`, or `realloc` cut the units off; no pool
        // holds them. A child forked now does not need their contents: the program no longer
        // uses them.
        unsafe { self.vm.reset_attributes(extent.start(), extent.bytes()) }
    }

    /// Each part between two boundaries is one VMA.
    pub fn are_whole_vmas(&self, extent: Extent) -> bool {
        let mut from = extent.head;
        for end in extent.head + 1..=extent.end() {
            if end < extent.end() && !self.pagemap.unit(end).has(Flags::ANY_BOUNDARY) {
                continue;
            }
            let part = Extent::between(from, end);
            if !self.vm.is_one_vma(part.start(), part.bytes()) {
                return false;
            }
            from = end;
        }
        true
    }

    fn has_boundary(&self, extent: Extent, kinds: Flags) -> bool {
        (extent.head + 1..extent.end()).any(|id| self.pagemap.unit(id).has(kinds))
    }
}

/// The block is old enough for a search for guard regions, which do not split a VMA.
fn is_searched_for_guards(extent: Extent, age_ms: u32) -> bool {
    age_ms >= GUARD_MIN_AGE_MS && age_ms / GUARD_MIN_AGE_MS_PER_UNIT >= extent.len
}

// The probe.
//
// The kernel splits a VMA where attributes differ and merges neighbouring VMAs with equal
// attributes. So if one VMA covers a block and a free page beside it, the block still has default
// attributes. The free page is the **spare page** behind the block's end, in its last unit, or a
// page of a neighbour, or the reference page before the address window.

impl<V: Vm> Recycler<V> {
    /// The units of a block for which no probe proves default attributes; empty for a pristine
    /// block.
    pub fn units_without_proof(&self, extent: Extent) -> Extent {
        let _permit = self.probe_limit.acquire(|| self.vm.yield_now());
        let inner = Extent::new(extent.head + 1, extent.len.saturating_sub(1));
        let units = self.pagemap.units(inner);
        let mut boundaries = (inner.head..)
            .zip(units)
            .filter(|(_, unit)| unit.has(Flags::VMA_BOUNDARY))
            .map(|(id, _)| id);
        let Some(first) = boundaries.next() else {
            let is_pristine = self.is_one_vma_with_page_behind(extent.head, extent)
                || self.range_with_spare_page(extent).is_none()
                    && self.is_one_vma_with_page_before(extent, extent.end());
            return extent.prefix(if is_pristine { 0 } else { extent.len });
        };
        // Only the first and the last of several VMAs can reach beyond the block.
        let last = boundaries.last().unwrap_or(first);
        let starts_vma = self.pagemap.unit(extent.head).has(Flags::VMA_BOUNDARY);
        let end = if self.is_one_vma_with_page_behind(last, extent) {
            last
        } else {
            extent.end()
        };
        let start = if !starts_vma && self.is_one_vma_with_page_before(extent, first) {
            first
        } else {
            extent.head
        };
        Extent::between(start, end)
    }

    /// One VMA covers the block from this unit on, and a free page behind the block.
    fn is_one_vma_with_page_behind(&self, from: UnitId, extent: Extent) -> bool {
        let probe = |end: usize| self.is_one_vma(address(from), end);
        match self.range_with_spare_page(extent) {
            Some((start, bytes)) => probe(start + bytes),
            None => probe_if_stable(|| self.free_page_behind(extent.end()), probe),
        }
    }

    /// One VMA covers a free page before the block, and the block up to this unit.
    fn is_one_vma_with_page_before(&self, extent: Extent, to: UnitId) -> bool {
        let probe = |start: usize| self.is_one_vma(start, address(to));
        let reference_page = self.reference_page.load(Relaxed);
        probe_if_stable(|| self.free_page_before(extent.head), probe)
            || reference_page != 0 && reference_page < extent.start() && probe(reference_page)
    }

    fn is_one_vma(&self, from: usize, to: usize) -> bool {
        self.vm.is_one_vma(from, to - from)
    }

    /// The address of a block and the bytes up to the end of its spare page. None: the block fills
    /// its last unit, or the attributes behind its end are unknown.
    pub fn range_with_spare_page(&self, extent: Extent) -> Option<(usize, usize)> {
        let head = self.pagemap.unit(extent.head);
        let bytes = self.geometry().size(head.pages());
        let is_unknown = head.has(Flags::SHRUNK.with(Flags::ALTERED));
        let has_page = bytes < extent.bytes() && !is_unknown;
        has_page.then(|| (extent.start(), bytes + self.geometry().page_bytes()))
    }

    /// The end address of the first free page in the extents from `head` on.
    fn free_page_behind(&self, mut head: UnitId) -> Option<usize> {
        for _ in 0..=MAX_SKIPPED_BLOCKS {
            let unit = self.pagemap.find(head)?;
            if is_free_with_default_attributes(unit) {
                return Some(address(head) + self.geometry().page_bytes());
            }
            let block = self.block_at(head)?;
            if let Some((start, bytes)) = self.range_with_spare_page(block) {
                return Some(start + bytes);
            }
            head = block.end();
        }
        None
    }

    /// The start address of the last free page in the extents that end at or before `end`.
    fn free_page_before(&self, mut end: UnitId) -> Option<usize> {
        for _ in 0..=MAX_SKIPPED_BLOCKS {
            let last = self.pagemap.find(end.checked_sub(1)?)?;
            let page = address(end) - self.geometry().page_bytes();
            if is_free_with_default_attributes(last) {
                return Some(page);
            }
            let block = self.block_at(end.checked_sub(last.len())?)?;
            if block.end() != end {
                return None;
            }
            if self.range_with_spare_page(block).is_some() {
                return Some(page);
            }
            end = block.head;
        }
        None
    }

    pub fn block_bytes(&self, extent: Extent) -> usize {
        self.geometry().size(self.pagemap.unit(extent.head).pages())
    }
}

fn is_free_with_default_attributes(unit: &Unit) -> bool {
    matches!(unit.kind(), Kind::Cached | Kind::Empty) && !unit.has(Flags::ALTERED)
}

/// Probes, then checks again that the page is free. The lock is not held, so another thread may
/// have allocated the page and changed its attributes in between.
fn probe_if_stable(page: impl Fn() -> Option<usize>, probe: impl Fn(usize) -> bool) -> bool {
    page().is_some_and(|found| probe(found) && page() == Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn guards_are_searched_in_blocks_that_lived_a_second_and_4_ms_per_unit() {
        for (units, age_ms, searched) in [
            (1, 999, false),
            (1, 1_000, true),
            (250, 1_000, true),
            (251, 1_000, false),
            (251, 1_003, false),
            (251, 1_004, true),
        ] {
            let is_searched = is_searched_for_guards(Extent::new(1, units), age_ms);
            assert_eq!(is_searched, searched, "{units} units, {age_ms} ms");
        }
    }

    #[test]
    fn probe_proves_nothing_when_the_page_is_allocated_meanwhile() {
        let page = Cell::new(Some(1));
        assert!(probe_if_stable(|| page.get(), |_| true));
        assert!(!probe_if_stable(
            || page.get(),
            |_| page.replace(None).is_some()
        ));
    }
}
