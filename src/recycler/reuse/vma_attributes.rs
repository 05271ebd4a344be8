//! What a program did to its block (`madvise`, `mlock`, `mprotect`, `mbind`, `userfaultfd`, `mmap` over a part of it)
//! must not reach the next user.
//!
//! Each call that would undo one of these costs 0.1 to 0.5 microseconds, the eight of them (`Kernel::reset_attributes`; one more
//! on machines of several memory nodes, one where every mapping asks for huge pages) a tenth of a busy block's life. But what is done to a block ends at the block's last page, and splits the mapping there: one look shows
//! that nothing was done (`witness`).
//!
//! Where that does not hold, everything that can be undone is, and the kernel joins mappings that are alike
//! again; and now and then a block of several mappings is unmapped instead, so that they stay few. What is then still a mapping of its own was altered in some other way, and is unmapped. Blocks that
//! fill their units may have no witness, and those that were gathered have many mappings, the inner ones without; there
//! each must at least be one mapping, and hold no file. Two things are not seen there: a userfaultfd on
//! exactly the units of one mapping (or of what was mapped in parts), and advice for huge pages on them, which does no harm.

use crate::core::extent::Extent;
use crate::core::unit::Flags;
use crate::os::vm::Vm;
use crate::state::recycler::Recycler;
use std::sync::atomic::Ordering::Relaxed;

/// numpy asks for huge pages from 4 MiB on; below, an unexpected flag is rare enough to drop the pages.
const ADVISED_UNITS: u32 = 3;
/// Guards split no mapping, and the look for them costs 6 microseconds for each unit. A block is looked
/// through when it was in use for this long, for each unit: a thousandth of its life.
const GUARDED_MS: u32 = 4;

/// Of so many blocks of several mappings, for each unit, one is unmapped. To take the marks off costs 2 to 15
/// microseconds, to fault a unit in anew 700: mending costs about what came before it, and ends what would come.
const RESETS_PER_UNIT: u64 = 64;

/// What the free of a block does with its mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    AsNew,
    /// Something of the program's is left: unmap it.
    Altered,
    /// Of several mappings, and its turn to end: unmap it.
    Patched,
}

impl<M: Vm> Recycler<M> {
    /// Makes the mapping of a block that began at `born_ms` as good as new, where it can. Called by the block's owner.
    pub fn check_attributes(&self, extent: Extent, born_ms: u32, now_ms: u32) -> Condition {
        if now_ms.wrapping_sub(born_ms) / GUARDED_MS >= extent.len {
            let _turn = self.probe_limit.acquire(|| self.map.yield_now());
            // SAFETY: the program gave the block back, and it is in no pool yet.
            unsafe { self.map.remove_guards(extent.start(), extent.bytes()) };
        }
        let units_without_proof = self.units_without_proof(extent);
        if units_without_proof.len == 0 {
            return Condition::AsNew;
        }
        if self.has_boundary(extent, Flags::VMA_BOUNDARY) && self.count_patched(extent) {
            return Condition::Patched;
        }
        let boundary = self.has_boundary(extent, Flags::ANY_BOUNDARY);
        let _turn = self.reset_limit.acquire(|| self.map.yield_now());
        if self.take_marks_off(extent, units_without_proof, boundary) {
            Condition::AsNew
        } else {
            Condition::Altered
        }
    }

    /// True: it is this one's turn to end. Where blocks of many sizes come and go, each unit ends up as a mapping of its own;
    /// units mapped anew are one with their neighbours.
    fn count_patched(&self, extent: Extent) -> bool {
        let multi_vma_frees = self.multi_vma_frees.fetch_add(1, Relaxed) + 1;
        multi_vma_frees.is_multiple_of(RESETS_PER_UNIT * u64::from(extent.len))
    }

    /// False: some are left.
    fn take_marks_off(&self, extent: Extent, units_without_proof: Extent, boundary: bool) -> bool {
        let spare = self.spare_page(extent);
        if extent.len < ADVISED_UNITS && spare.is_some() && !boundary {
            return false;
        }
        if !self.reset_attributes(units_without_proof) {
            return false;
        }
        let restored = || match spare {
            Some((from, bytes)) if !boundary => self.map.is_one_vma(from, bytes),
            _ => self.are_whole_mappings(units_without_proof),
        };
        if restored() {
            return true;
        }
        if extent.len < ADVISED_UNITS {
            return false;
        }
        // Advice on huge pages cannot be taken back, but it can be the same all over.
        // SAFETY: the program gave the block back, and it is in no pool yet.
        unsafe { self.map.advise_huge(extent.start(), extent.bytes()) };
        for id in extent.units() {
            self.pagemap.unit(id).add_flags(Flags::HUGE);
        }
        self.pagemap.add_boundaries(extent, Flags::VMA_BOUNDARY);
        self.are_whole_mappings(extent)
    }

    /// The same for units that realloc cut off, in the caller's hands. The block that they were of was `fresh`, or was whole
    /// mappings, as these then are, too.
    pub fn restore_attributes(&self, cut: Extent, fresh: bool) -> bool {
        // SAFETY: `shrink` cut these units off, and has them as `Busy`.
        unsafe { self.map.remove_guards(cut.start(), cut.bytes()) };
        fresh || self.reset_attributes(cut)
    }

    /// The same for the pages behind a block that is to grow.
    pub fn restore_tail(&self, extent: Extent) -> bool {
        let bytes = self.block_bytes(extent);
        let (from, tail) = (extent.start() + bytes, extent.bytes() - bytes);
        if tail == 0 {
            return true;
        }
        self.resets.fetch_add(1, Relaxed);
        // SAFETY: pages of a block that the program gave to realloc, behind its end: nobody has them.
        unsafe {
            self.map.remove_guards(from, tail);
            self.map.reset_attributes(from, tail)
        }
    }

    /// Takes every flag off, at full cost. False also where it holds a file or is shared.
    fn reset_attributes(&self, extent: Extent) -> bool {
        self.resets.fetch_add(1, Relaxed);
        // SAFETY: a block that the program gave back, or units that realloc cut off: in no pool yet, and a child that
        // another thread forks in this moment may not use what that thread does not know to be alive.
        unsafe { self.map.reset_attributes(extent.start(), extent.bytes()) }
    }

    /// Each part between two seams is one mapping.
    pub fn are_whole_mappings(&self, extent: Extent) -> bool {
        let mut from = extent.head;
        for end in extent.head + 1..=extent.end() {
            if end < extent.end() && !self.pagemap.unit(end).has(Flags::ANY_BOUNDARY) {
                continue;
            }
            let part = Extent::between(from, end);
            if !self.map.is_one_vma(part.start(), part.bytes()) {
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
