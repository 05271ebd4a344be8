//! Reserves address space for a block: an empty extent, a hole, or a new mapping, preferably in the
//! recycler's own address window.
//!
//! Invariant: the result is `Busy`, owned by the calling thread, mapped, and without pages.

use crate::core::geometry::Bytes;
use crate::core::unit::{id_of, Extent, FreeKind, Kind, UNIT_BYTES};
use crate::os::vm::{RemapOutcome, Vm};
use crate::state::address_window::AddressWindow;
use crate::state::recycler::{Locked, Recycler, MAX_WAITS};
use crate::state::stats::Fallback;
use std::sync::atomic::Ordering::Relaxed;

impl<V: Vm> Recycler<V> {
    /// None: the system provides no mapping.
    pub fn reserve_extent<'a>(
        &'a self,
        state: Locked<'a>,
        units: u32,
    ) -> Option<(Locked<'a>, Extent)> {
        let (state, found) = self.try_empty(state, units);
        if let Some(extent) = found {
            return Some((state, extent));
        }
        let (state, found) = self.try_hole(state, units);
        if let Some(extent) = found {
            return Some((state, extent));
        }
        self.map_new(state, units)
    }

    fn try_empty<'a>(&'a self, mut state: Locked<'a>, units: u32) -> (Locked<'a>, Option<Extent>) {
        let Some(extent) = state.space.take_best_fit(units, FreeKind::Empty) else {
            return (state, None);
        };
        if !state.space.is_altered(extent) {
            return (state, Some(extent));
        }
        drop(state);
        let outcome = self.remap_if_altered(extent);
        state = self.lock();
        match outcome {
            RemapOutcome::Done => return (state, Some(extent)),
            // No block may have the attributes that an earlier one left.
            RemapOutcome::Refused => state.space.insert_free(extent, FreeKind::Empty),
            RemapOutcome::Lost => {
                state.counters.count_fallback(Fallback::TargetLost);
                state.space.forget(extent);
            }
        }
        (state, None)
    }

    fn try_hole<'a>(&'a self, mut state: Locked<'a>, units: u32) -> (Locked<'a>, Option<Extent>) {
        let Some(hole) = state.space.take_best_fit(units, FreeKind::Hole) else {
            return (state, None);
        };
        drop(state);
        let is_mapped = self.vm.reserve_at(hole.start(), hole.bytes());
        state = self.lock();
        if is_mapped {
            state.space.track_new(hole);
            (state, Some(hole))
        } else {
            state.space.forget(hole);
            (state, None)
        }
    }

    fn map_new<'a>(&'a self, mut state: Locked<'a>, units: u32) -> Option<(Locked<'a>, Extent)> {
        let hint = state.window.hint();
        drop(state);
        let hint = hint.unwrap_or_else(|| self.open_window());
        let bytes = units as usize * UNIT_BYTES;
        let start = self.vm.reserve(hint, bytes).or_else(|| {
            // Address space or VMAs ran out.
            self.release_addresses()
                .then(|| self.vm.reserve(0, bytes))?
        });
        let Some(start) = start else {
            self.lock().counters.count_fallback(Fallback::NoMapping);
            return None;
        };
        let extent = Extent::new(id_of(start), units);
        let has_entries = self.pagemap.ensure(extent.head, units, &self.vm);
        let mut state = self.lock();
        // Decided with the first mapping.
        state.space.fault_bytes = Bytes::new(self.vm.fault_bytes() as u64);
        if has_entries {
            state.window.advance(hint, start, bytes);
            state = self.wait_until_recorded(state, extent);
            let is_unused = |id| self.pagemap.unit(id).kind() == Kind::None;
            if extent.units().all(is_unused) {
                state.space.track_new(extent);
                return Some((state, extent));
            }
        }
        // The pagemap cannot grow, or another thread recorded a part of the range as a hole. The
        // backend serves this request.
        state.counters.count_fallback(Fallback::NoMapping);
        drop(state);
        // SAFETY: the system mapped the range above, and no extent covers it.
        unsafe { self.vm.unmap(start, bytes) };
        None
    }

    /// Opens the address window: a range far below the system's mappings, in which the recycler's
    /// extents are neighbours. Maps the reference page before it. Returns the hint for the next
    /// mapping; 0: none.
    #[cold]
    fn open_window(&self) -> usize {
        let Some(start) = AddressWindow::place(self.vm.default_address()) else {
            return 0;
        };
        let page_bytes = self.geometry().page_bytes();
        if self.vm.reserve_at(start - page_bytes, page_bytes) {
            self.reference_page.store(start - page_bytes, Relaxed);
        }
        self.lock().window.open(start);
        start
    }

    /// Waits until the pagemap shows the range as unused: the system may return a range that
    /// another thread has just unmapped and not yet recorded.
    fn wait_until_recorded<'a>(&'a self, mut state: Locked<'a>, extent: Extent) -> Locked<'a> {
        for waits in 0..MAX_WAITS {
            let is_recorded = |id| matches!(self.pagemap.unit(id).kind(), Kind::None | Kind::Hole);
            if extent.units().all(is_recorded) {
                break;
            }
            drop(state);
            self.wait_for_thread(waits);
            state = self.lock();
        }
        state
    }
}
