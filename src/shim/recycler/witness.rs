//! The proof that nothing was done to a block: one mapping covers it and a page that nobody had.
//!
//! That page, the witness, is behind the block's end in its last unit. A block that fills its units has none there; but
//! kernels join neighbouring mappings that are alike, so a page of a neighbour will do, also of one farther away, when
//! nothing was done to the blocks between, either. Before the first unit of the window lies a page that serves for this
//! alone: where one mapping reaches from there to the block it does not matter what is between.

use super::engine::Recycler;
use super::map::Map;
use super::space::Extent;
use super::unit::{address, Flags, Kind, Unit, UnitId};
use std::sync::atomic::Ordering::Relaxed;

/// Blocks that are passed over on the way to a near witness, on each side. Each costs a look at one or two units; to do
/// without costs nine system calls.
const PASSED: usize = 4;

impl<M: Map> Recycler<M> {
    /// One mapping covers the block and a page that nobody had. Changes nothing.
    pub fn is_untouched(&self, extent: Extent) -> bool {
        if let Some((from, bytes)) = self.spare_page(extent) {
            return self.map.is_one_mapping(from, bytes);
        }
        let (start, end) = (extent.start(), extent.start() + extent.bytes());
        let is_one = |from: usize, to: usize| self.map.is_one_mapping(from, to - from);
        let behind = self.page_behind(extent.end());
        if behind.is_some_and(|to| is_one(start, to)) {
            return true;
        }
        let before = self.page_before(extent.head);
        let first = self.witness.load(Relaxed);
        before.is_some_and(|from| is_one(from, end))
            || first != 0 && first < start && is_one(first, end)
    }

    /// The block and the page behind its last, when that is still in its last unit; as (address, bytes).
    pub fn spare_page(&self, extent: Extent) -> Option<(usize, usize)> {
        let bytes = self.block_bytes(extent);
        let unknown = Flags::SHRUNK.with(Flags::ALTERED);
        let fits = bytes < extent.bytes() && !self.pagemap.unit(extent.head).has(unknown);
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
        unit.begins_block().then(|| Extent {
            head,
            len: unit.len(),
        })
    }

    pub fn block_bytes(&self, extent: Extent) -> usize {
        self.geometry().size(self.pagemap.unit(extent.head).pages())
    }
}

/// Nobody has it, and nothing that was done to it is left.
fn is_free(unit: &Unit) -> bool {
    matches!(unit.kind(), Kind::Cached | Kind::Empty) && !unit.has(Flags::ALTERED)
}
