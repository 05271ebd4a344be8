//! Unmaps extents, or drops their pages where the system refuses to unmap them.
//!
//! Invariant: the extent is `Purging` and owned by the calling thread. A unit is marked `Gone`
//! before it is unmapped, so that the child of a fork knows that another thread may map it.

use crate::core::unit::{Extent, Flags, FreeKind, Kind};
use crate::os::vm::{RemapOutcome, Vm};
use crate::state::recycler::{Locked, Recycler};
use crate::state::stats::Fallback;

/// Units per call. The system call holds the lock of the address space for some milliseconds.
const STRIDE: u32 = 16;

/// The state of the units that the system did not unmap at first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// None are left.
    Unmapped,
    /// Mapped without pages, with these flags.
    Emptied(Flags),
    /// The system neither unmaps nor empties them: the program sealed them.
    Stuck,
}

impl<V: Vm> Recycler<V> {
    /// Unmaps an owned extent whose pages are recorded as purging.
    pub fn unmap<'a>(&'a self, mut state: Locked<'a>, extent: Extent) -> Locked<'a> {
        state.unmapping_units += extent.len;
        let pages = state.space.populated(extent);
        state.space.pagemap.label(extent, Kind::Purging);
        drop(state);
        let unmapped = self.unmap_in_strides(extent);
        let outcome = self.empty_rest(extent.suffix_from(unmapped));
        let unmapped = match outcome {
            Rest::Unmapped => extent.len,
            Rest::Emptied(_) | Rest::Stuck => unmapped,
        };
        let mut state = self.lock();
        // Zero in a child that was forked during this call, in a signal handler.
        state.unmapping_units = state.unmapping_units.saturating_sub(extent.len);
        let (gone, rest) = state.space.split(extent, unmapped);
        state.space.forget(gone);
        self.pagemap.add_boundaries(gone, Flags::VMA_BOUNDARY);
        state.vma_count.record_splits();
        if state.window.holds(gone) {
            state.space.insert_free(gone, FreeKind::Hole);
        }
        match outcome {
            Rest::Unmapped => {}
            Rest::Emptied(flags) => {
                state.counters.count_fallback(Fallback::UnmapRefused);
                for unit in self.pagemap.units(rest) {
                    unit.set_flags(flags);
                }
                self.pagemap.add_boundaries(rest, Flags::VMA_BOUNDARY);
                state.insert_empty(rest);
            }
            Rest::Stuck => {
                self.pagemap.set_kind_of_each(rest, Kind::Stuck);
                state.counters.count_fallback(Fallback::Stuck);
            }
        }
        state.record_purged(pages);
        state
    }

    /// Drops the pages of an owned extent, which are recorded as purging, and keeps it mapped.
    pub fn empty_in_place<'a>(&'a self, state: Locked<'a>, extent: Extent) -> Locked<'a> {
        state.space.pagemap.label(extent, Kind::Purging);
        drop(state);
        // SAFETY: the extent is `Purging` and owned by this thread.
        let is_emptied = unsafe { self.vm.discard(extent.start(), extent.bytes()) };
        let mut state = self.lock();
        if !is_emptied {
            state.counters.count_fallback(Fallback::DiscardRefused);
            return self.unmap(state, extent);
        }
        let pages = state.space.populated(extent);
        state.record_purged(pages);
        state.insert_empty(extent);
        state
    }

    /// Unmaps the units in order. Returns how many are unmapped: all, unless the system refuses.
    fn unmap_in_strides(&self, extent: Extent) -> u32 {
        let mut unmapped = 0;
        while unmapped < extent.len {
            let rest = extent.suffix_from(unmapped);
            let stride = rest.prefix(STRIDE.min(rest.len));
            let later = rest.suffix_from(stride.len);
            self.pagemap.label(later, Kind::Purging);
            self.mark_gone(stride);
            // SAFETY: this thread owns the `Purging` extent; no thread accesses a `Gone` unit.
            if !unsafe { self.vm.unmap(stride.start(), stride.bytes()) } {
                break;
            }
            unmapped += stride.len;
        }
        unmapped
    }

    /// Empties units that the system refuses to unmap.
    fn empty_rest(&self, rest: Extent) -> Rest {
        if rest.len == 0 {
            return Rest::Unmapped;
        }
        self.mark_gone(rest);
        // SAFETY: this thread owns the extent, which is mapped; no thread accesses a `Gone` unit.
        match unsafe { self.vm.remap_fresh(rest.start(), rest.bytes()) } {
            RemapOutcome::Done => return Rest::Emptied(Flags::NONE),
            RemapOutcome::Lost => return Rest::Unmapped,
            RemapOutcome::Refused => {}
        }
        // SAFETY: this thread owns the extent, which is mapped; no thread accesses a `Gone` unit.
        if unsafe { self.vm.discard(rest.start(), rest.bytes()) } {
            Rest::Emptied(Flags::ALTERED)
        } else {
            Rest::Stuck
        }
    }
}
