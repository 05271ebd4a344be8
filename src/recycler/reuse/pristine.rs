//! The probe: proves that the program changed no attribute of a block's mapping.
//!
//! The kernel splits a VMA where attributes differ and merges neighbouring VMAs with equal
//! attributes. So if one VMA covers a block and a free page beside it, the block still has default
//! attributes. The free page is the **spare page** behind the block's end, in its last unit, or a
//! page of a neighbour, or the reference page before the address window.
//!
//! Invariant: a probe is sound only if the page is free before and after it. Changes no state.

use crate::core::extent::Extent;
use crate::core::unit::{address, Flags, Kind, Unit, UnitId};
use crate::os::vm::Vm;
use crate::state::recycler::Recycler;
use std::sync::atomic::Ordering::Relaxed;

/// Blocks to skip, on each side, in the search for a free page. To skip one costs one or two unit
/// lookups; without a free page, a reset costs eight system calls and a probe of each VMA.
const MAX_SKIPPED_BLOCKS: usize = 4;

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

    /// The live block whose first unit this is.
    fn block_at(&self, head: UnitId) -> Option<Extent> {
        let unit = self.pagemap.find(head)?;
        unit.begins_block().then(|| Extent::new(head, unit.len()))
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
    fn probe_proves_nothing_when_the_page_is_allocated_meanwhile() {
        let page = Cell::new(Some(1));
        assert!(probe_if_stable(|| page.get(), |_| true));
        assert!(!probe_if_stable(
            || page.get(),
            |_| page.replace(None).is_some()
        ));
    }
}
