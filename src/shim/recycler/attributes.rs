//! What a program did to its block (`madvise`, `mlock`, `mprotect`, `mbind`, `userfaultfd`, `mmap` over a part of it)
//! must not reach the next user.
//!
//! Each call that would undo one of these costs 0.1 to 0.5 microseconds, eight of them a tenth of a busy
//! block's life. But what is done to a block ends at the block's last page, and splits the mapping there:
//! when one mapping still covers the block and one page that nobody ever had, nothing was done.
//!
//! Where that does not hold, everything that can be undone is, and the kernel joins mappings that are alike
//! again. What is then still a mapping of its own was altered in some other way, and is unmapped. Blocks that
//! end with a unit may have no page that could be the witness, and those that were gathered have many mappings;
//! there each must at least be one mapping, and hold no file. Two things are not seen there: a userfaultfd on
//! exactly the units of one mapping, and advice for huge pages on them, which does no harm.

use super::engine::Recycler;
use super::map::Map;
use super::space::{sew, Extent};
use super::unit::{address, Flags, Kind, UNIT_BYTES};
use std::sync::atomic::Ordering::Relaxed;

/// numpy asks for huge pages from 4 MiB on; below, an unexpected flag is rare enough to drop the pages.
const ADVISED_UNITS: u32 = 3;
/// Guards split no mapping, and the look for them costs 6 microseconds for each unit. A block is looked
/// through when it was in use for this long, for each unit: a thousandth of its life.
const GUARDED_MS: u32 = 4;

impl<M: Map> Recycler<M> {
    /// True: the block's mapping is as good as new. False: unmap it. Called by the block's owner.
    pub fn has_fresh_attributes(&self, run: Extent, now_ms: u32) -> bool {
        let head = self.pagemap.unit(run.head);
        if now_ms.wrapping_sub(head.stamp()) / GUARDED_MS >= run.len {
            self.map
                .remove_guards(address(run.head), run.len as usize * UNIT_BYTES);
        }
        if self.is_untouched(run) {
            return true;
        }
        let spare = self.spare_page(run);
        let seam = self.has_seam(run);
        if run.len < ADVISED_UNITS && spare.is_some() && !seam {
            return false;
        }
        if !self.reset_attributes(run) {
            return false;
        }
        let restored = || match spare {
            Some((from, bytes)) if !seam => self.map.is_one_mapping(from, bytes),
            _ => self.are_own_mappings(run),
        };
        if restored() {
            return true;
        }
        if run.len < ADVISED_UNITS {
            return false;
        }
        // Advice on huge pages cannot be taken back, but it can be the same all over.
        self.map
            .advise_huge(address(run.head), run.len as usize * UNIT_BYTES);
        for id in run.units() {
            self.pagemap.unit(id).raise(Flags::HUGE);
        }
        sew(self.pagemap, run, Flags::SEAM);
        self.are_own_mappings(run)
    }

    /// Units that realloc cut off, in the caller's hands: as above, with nothing beside them to compare with.
    /// The block that they were of was `fresh`, or is not known to have been.
    pub fn has_restored_attributes(&self, cut: Extent, fresh: bool) -> bool {
        self.map
            .remove_guards(address(cut.head), cut.len as usize * UNIT_BYTES);
        fresh || self.reset_attributes(cut) && self.are_own_mappings(cut)
    }

    /// The same for the pages behind a block that is to grow.
    pub fn has_restored_tail(&self, run: Extent) -> bool {
        let bytes = self.block_bytes(run);
        let (from, tail) = (
            address(run.head) + bytes,
            run.len as usize * UNIT_BYTES - bytes,
        );
        if tail == 0 {
            return true;
        }
        self.resets.fetch_add(1, Relaxed);
        self.map.remove_guards(from, tail);
        self.map.reset_attributes(from, tail) && self.map.is_private_anonymous(from, tail)
    }

    /// One mapping covers the block and a page that nobody had. Changes nothing.
    pub fn is_untouched(&self, run: Extent) -> bool {
        let witness = self.spare_page(run).or_else(|| self.neighbours_page(run));
        witness.is_some_and(|(from, bytes)| self.map.is_one_mapping(from, bytes))
    }

    /// Takes every flag off, at full cost.
    fn reset_attributes(&self, run: Extent) -> bool {
        self.resets.fetch_add(1, Relaxed);
        self.map
            .reset_attributes(address(run.head), run.len as usize * UNIT_BYTES)
    }

    /// Each part between two seams is one mapping, and all of it is private and without a file.
    pub fn are_own_mappings(&self, run: Extent) -> bool {
        let mut from = run.head;
        for end in run.head + 1..=run.end() {
            if end < run.end() && !self.pagemap.unit(end).has(Flags::ANY_SEAM) {
                continue;
            }
            let bytes = (end - from) as usize * UNIT_BYTES;
            if !self.map.is_one_mapping(address(from), bytes) {
                return false;
            }
            from = end;
        }
        self.map
            .is_private_anonymous(address(run.head), run.len as usize * UNIT_BYTES)
    }

    fn has_seam(&self, run: Extent) -> bool {
        (run.head + 1..run.end()).any(|id| self.pagemap.unit(id).has(Flags::ANY_SEAM))
    }

    /// The block and the page behind its last, when that is still in its last unit; as (address, bytes).
    fn spare_page(&self, run: Extent) -> Option<(usize, usize)> {
        let bytes = self.block_bytes(run);
        let fits = bytes < run.len as usize * UNIT_BYTES
            && !self.pagemap.unit(run.head).has(Flags::SHRUNK);
        fits.then(|| (address(run.head), bytes + self.geometry().page_bytes()))
    }

    /// The block and a page of a neighbour that nobody has.
    fn neighbours_page(&self, run: Extent) -> Option<(usize, usize)> {
        let page = self.geometry().page_bytes();
        let (start, bytes) = (address(run.head), run.len as usize * UNIT_BYTES);
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
