//! What a program did to its block (`madvise`, `mlock`, `mprotect`, `mbind`) must not reach the next user.
//!
//! Each call that would undo one of these costs 0.2 to 0.5 microseconds, eight of them a tenth of a busy
//! block's life. But what is done to a block ends at the block's last page, and splits the mapping there:
//! when one mapping still covers the block and one page that nobody ever had, nothing was done.

use super::engine::Recycler;
use super::map::Map;
use super::space::Extent;
use super::unit::{address, Flags, Kind, UNIT_BYTES};
use std::sync::atomic::Ordering::Relaxed;

/// numpy asks for huge pages from 4 MiB on; below, an unexpected flag is rare enough to drop the pages.
const ADVISED_UNITS: u32 = 3;

impl<M: Map> Recycler<M> {
    /// True: the block's mapping is as good as new. False: unmap it. Called by the block's owner.
    pub fn has_fresh_attributes(&self, run: Extent) -> bool {
        let own = self.spare_page(run);
        let witness = own.or_else(|| self.neighbours_page(run));
        if witness.is_some_and(|(from, bytes)| self.map.is_one_mapping(from, bytes)) {
            return true;
        }
        let seam = (run.head + 1..run.end()).any(|id| self.pagemap.unit(id).has(Flags::SEAM));
        if run.len < ADVISED_UNITS && own.is_some() && !seam {
            return false;
        }
        self.reset_attributes(run, run.len >= ADVISED_UNITS && !seam)
    }

    /// Takes every flag off, at full cost. `huge` makes the advice for huge pages the same all over.
    pub fn reset_attributes(&self, run: Extent, huge: bool) -> bool {
        let resets =
            self.map
                .reset_attributes(address(run.head), run.len as usize * UNIT_BYTES, huge);
        if huge {
            for id in run.units() {
                self.pagemap.unit(id).raise(Flags::HUGE);
            }
        }
        self.resets.fetch_add(1, Relaxed);
        resets
    }

    /// The block and the page behind its last, when that is still in its last unit; as (address, bytes).
    fn spare_page(&self, run: Extent) -> Option<(usize, usize)> {
        let bytes = self.block_bytes(run);
        let fits = bytes < run.len as usize * UNIT_BYTES;
        fits.then(|| (address(run.head), bytes + self.geometry().page_bytes()))
    }

    /// The block and a page of a neighbour that nobody has.
    fn neighbours_page(&self, run: Extent) -> Option<(usize, usize)> {
        let page = self.geometry().page_bytes();
        let (start, bytes) = (address(run.head), self.block_bytes(run));
        let is_free = |kind: Kind| kind == Kind::Cached || kind == Kind::Empty;
        let behind = self.pagemap.find(run.end());
        if behind.is_some_and(|unit| is_free(unit.kind())) {
            return Some((start, bytes + page));
        }
        let before = self.pagemap.find(run.head - 1)?;
        let has_spare = || {
            let len = before.len();
            let head = run.head.checked_sub(len)?;
            self.spare_page(Extent { head, len })
        };
        let spare = is_free(before.kind()) || before.kind() == Kind::Live && has_spare().is_some();
        spare.then_some((start - page, bytes + page))
    }

    fn block_bytes(&self, run: Extent) -> usize {
        self.geometry().size(self.pagemap.unit(run.head).pages())
    }
}
