//! The proof that nothing was done to a block: one mapping covers it and a page that nobody had.
//!
//! That page, the witness, is behind the block's end in its last unit. A block that fills its units has none there; but
//! kernels join neighbouring mappings that are alike, so a page of a neighbour will do, also of one farther away, when
//! nothing was done to the blocks between, either. Before the first unit of the window lies a page that serves for this
//! alone: where one mapping reaches from there to the block it does not matter what is between.

use crate::core::extent::Extent;
use crate::core::unit::{address, Flags, Kind, Unit, UnitId};
use crate::os::vm::Vm;
use crate::state::recycler::Recycler;
use std::sync::atomic::Ordering::Relaxed;

/// Blocks that are passed over on the way to a near witness, on each side. Each costs a look at one or two units; to do
/// without costs eight system calls, and a look at each mapping.
const PASSED: usize = 4;

impl<M: Vm> Recycler<M> {
    /// The units of a block that no witness speaks for: none of a block that nothing was done to. Changes nothing.
    pub fn units_without_proof(&self, extent: Extent) -> Extent {
        let _turn = self.probe_limit.acquire(|| self.map.yield_now());
        let is_seam = |unit: &Unit| unit.has(Flags::VMA_BOUNDARY);
        let mut inside = self.pagemap.units(extent.suffix_from(1));
        let Some(before) = inside.position(is_seam) else {
            let known = self.is_one_vma_with_page_behind(extent.head, extent)
                || self.spare_page(extent).is_none()
                    && self.is_one_vma_with_page_before(extent, extent.end());
            return extent.prefix(if known { 0 } else { extent.len });
        };
        // Of several mappings only the last and the first can reach beyond the block.
        let first = extent.head + 1 + before as u32;
        let is_seam = |id: &UnitId| is_seam(self.pagemap.unit(*id));
        let last = (first..extent.end()).rev().find(is_seam).unwrap_or(first);
        let to = match self.is_one_vma_with_page_behind(last, extent) {
            true => last,
            false => extent.end(),
        };
        let from = match !is_seam(&extent.head) && self.is_one_vma_with_page_before(extent, first) {
            true => first,
            false => extent.head,
        };
        Extent::between(from, to)
    }

    /// One mapping covers the block from this unit on, and a page behind it that nobody had.
    fn is_one_vma_with_page_behind(&self, from: UnitId, extent: Extent) -> bool {
        let is_one = |end: usize| self.is_one(address(from), end);
        match self.spare_page(extent) {
            Some((start, bytes)) => is_one(start + bytes),
            None => probe_if_stable(|| self.page_behind(extent.end()), is_one),
        }
    }

    /// One mapping covers a page before the block that nobody had, and the block up to this unit.
    fn is_one_vma_with_page_before(&self, extent: Extent, to: UnitId) -> bool {
        let is_one = |start: usize| self.is_one(start, address(to));
        let first = self.reference_page.load(Relaxed);
        probe_if_stable(|| self.page_before(extent.head), is_one)
            || first != 0 && first < extent.start() && is_one(first)
    }

    fn is_one(&self, from: usize, to: usize) -> bool {
        self.map.is_one_vma(from, to - from)
    }

    /// The block and the page behind its last, when that is still in its last unit; as (address, bytes).
    pub fn spare_page(&self, extent: Extent) -> Option<(usize, usize)> {
        let head = self.pagemap.unit(extent.head);
        let bytes = self.geometry().size(head.pages());
        let unknown = Flags::SHRUNK.with(Flags::ALTERED);
        let fits = bytes < extent.bytes() && !head.has(unknown);
        fits.then(|| (extent.start(), bytes + self.geometry().page_bytes()))
    }

    /// The end of a page that nobody has in the extents from `head` on.
    fn page_behind(&self, mut head: UnitId) -> Option<usize> {
        for _ in 0..=PASSED {
            let unit = self.pagemap.find(head)?;
            if is_free(unit) {
                return Some(address(head) + self.geometry().page_bytes());
            }
            let block = self.block_at(head)?;
            if let Some((from, bytes)) = self.spare_page(block) {
                return Some(from + bytes);
            }
            head = block.end();
        }
        None
    }

    /// The start of a page that nobody has in the extents that end before `end`.
    fn page_before(&self, mut end: UnitId) -> Option<usize> {
        for _ in 0..=PASSED {
            let last = self.pagemap.find(end.checked_sub(1)?)?;
            let start = address(end) - self.geometry().page_bytes();
            if is_free(last) {
                return Some(start);
            }
            let block = self.block_at(end.checked_sub(last.len())?)?;
            if block.end() != end {
                return None;
            }
            if self.spare_page(block).is_some() {
                return Some(start);
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

/// Nobody has it, and nothing that was done to it is left.
fn is_free(unit: &Unit) -> bool {
    matches!(unit.kind(), Kind::Cached | Kind::Empty) && !unit.has(Flags::ALTERED)
}

/// The look shows what it should, and at a page that is still nobody's after it: without the lock another thread may have
/// taken it meanwhile, and marked it as the block is.
fn probe_if_stable(page: impl Fn() -> Option<usize>, look: impl Fn(usize) -> bool) -> bool {
    page().is_some_and(|found| look(found) && page() == Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_page_that_somebody_took_during_the_look_shows_nothing() {
        let page = Cell::new(Some(1));
        assert!(probe_if_stable(|| page.get(), |_| true));
        assert!(!probe_if_stable(
            || page.get(),
            |_| page.replace(None).is_some()
        ));
    }
}
