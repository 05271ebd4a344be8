//! Extents on their way back to the system, with their addresses or, where that is refused, without.

use crate::core::extent::Extent;
use crate::core::unit::{Flags, FreeKind, Kind};
use crate::os::vm::{RemapOutcome, Vm};
use crate::state::recycler::{Locked, Recycler};
use crate::state::stats::Fallback;

/// Unmapping holds the address space's lock: this many units at a time (some milliseconds).
const STRIDE: u32 = 16;

impl<M: Vm> Recycler<M> {
    /// Unmaps a `Busy` extent whose pages count as purging.
    pub fn unmap<'a>(&'a self, state: Locked<'a>, extent: Extent) -> Locked<'a> {
        let pages = state.space.populated(extent);
        state.space.pagemap.label(extent, Kind::Purging);
        drop(state);
        let mut gone = self.release_in_strides(extent);
        let left = extent.suffix_from(gone);
        let renewal = self.renew_left(left);
        let renewed = renewal == RemapOutcome::Done;
        let emptied = match renewal {
            RemapOutcome::Done => true,
            // At least no pages.
            // SAFETY: this thread purges it, and it is mapped as it was.
            RemapOutcome::Refused => unsafe { self.map.discard(left.start(), left.bytes()) },
            RemapOutcome::Lost => {
                gone = extent.len;
                true
            }
        };
        let mut state = self.lock();
        let (gone, rest) = state.space.split(extent, gone);
        state.space.forget(gone);
        state
            .space
            .pagemap
            .add_boundaries(gone, Flags::VMA_BOUNDARY);
        state.vma_count.record_move();
        if state.window.holds(gone) {
            state.space.insert_free(gone, FreeKind::Hole);
        }
        if rest.len > 0 && emptied {
            state.counters.count_fallback(Fallback::UnmapRefused);
            for id in rest.units() {
                state
                    .space
                    .unit(id)
                    .set_flags(if renewed { Flags::NONE } else { Flags::ALTERED });
            }
            state
                .space
                .pagemap
                .add_boundaries(rest, Flags::VMA_BOUNDARY);
            state.empty_out(rest);
        } else if rest.len > 0 {
            // Sealed by the program: nobody's for ever.
            self.pagemap.set_kind_of_each(rest, Kind::Stuck);
            state.counters.count_fallback(Fallback::Stuck);
        }
        state.record_purged(pages);
        state
    }

    /// Drops the pages of a `Busy` extent, which count as purging; its addresses stay ours.
    pub fn empty_in_place<'a>(&'a self, state: Locked<'a>, extent: Extent) -> Locked<'a> {
        state.space.pagemap.label(extent, Kind::Purging);
        drop(state);
        // SAFETY: `Purging` in this thread's hands.
        let emptied = unsafe { self.map.discard(extent.start(), extent.bytes()) };
        let mut state = self.lock();
        if !emptied {
            state.counters.count_fallback(Fallback::DiscardRefused);
            return self.unmap(state, extent);
        }
        let pages = state.space.populated(extent);
        state.record_purged(pages);
        state.empty_out(extent);
        state
    }

    /// A pristine mapping in place of what the system refused to unmap.
    fn renew_left(&self, left: Extent) -> RemapOutcome {
        if left.len == 0 {
            return RemapOutcome::Done;
        }
        // Lost, the addresses may be somebody else's: the child of a fork must know.
        self.mark_gone(left);
        // SAFETY: this thread purges it, and it is still mapped; marked `Gone`, nobody counts on it.
        unsafe { self.map.remap_fresh(left.start(), left.bytes()) }
    }

    /// Answers how many units are unmapped: all, unless the system refuses.
    fn release_in_strides(&self, extent: Extent) -> u32 {
        let mut gone = 0;
        while gone < extent.len {
            let len = STRIDE.min(extent.len - gone);
            let stride = extent.part(gone, len);
            // Once unmapped the addresses may be somebody else's: the child of a fork must know.
            self.pagemap
                .label(Extent::between(stride.end(), extent.end()), Kind::Purging);
            self.mark_gone(stride);
            // SAFETY: a part of an extent that this thread purges; marked `Gone`, nobody counts on it.
            if !unsafe { self.map.unmap(stride.start(), stride.bytes()) } {
                break;
            }
            gone += len;
        }
        gone
    }
}
