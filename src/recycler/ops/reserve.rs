//! Where the addresses of large blocks come from: empty mappings, holes, a window of our own, the system.

use crate::core::extent::Extent;
use crate::core::unit::{id_of, FreeKind, Kind, UNIT_BYTES};
use crate::os::vm::{RemapOutcome, Vm};
use crate::state::address_window::AddressWindow;
use crate::state::recycler::{Locked, Recycler};
use crate::state::stats::Fallback;
use std::sync::atomic::Ordering::Relaxed;

/// How often to wait for another thread's books; it needs no more than one system call.
const RECORD_TRIES: u32 = 1_000_000;

impl<M: Vm> Recycler<M> {
    /// A mapped range without pages, `Busy`.
    pub fn reserve_extent<'a>(
        &'a self,
        mut state: Locked<'a>,
        units: u32,
    ) -> Option<(Locked<'a>, Extent)> {
        if let Some(extent) = state.space.take_best_fit(units, FreeKind::Empty) {
            if !state.space.is_altered(extent) {
                return Some((state, extent));
            }
            drop(state);
            let renewal = self.remap_if_altered(extent);
            state = self.lock();
            match renewal {
                RemapOutcome::Done => return Some((state, extent)),
                // Nobody may have it with the marks of another.
                RemapOutcome::Refused => state.space.insert_free(extent, FreeKind::Empty),
                RemapOutcome::Lost => {
                    state.counters.count_fallback(Fallback::TargetLost);
                    state.space.forget(extent);
                }
            }
        }
        if let Some(hole) = state.space.take_best_fit(units, FreeKind::Hole) {
            drop(state);
            let mapped = self
                .map
                .reserve_at(hole.start(), units as usize * UNIT_BYTES);
            state = self.lock();
            if mapped {
                state.space.track_new(hole);
                return Some((state, hole));
            }
            state.space.forget(hole);
        }
        let hint = state.window.hint();
        drop(state);
        let hint = hint.unwrap_or_else(|| self.open_window());
        let bytes = units as usize * UNIT_BYTES;
        let start = self.map.reserve(hint, bytes).or_else(|| {
            // Addresses or mappings ran out: give everything back, then ask again.
            self.purge_all();
            self.map.reserve(0, bytes)
        });
        let Some(start) = start else {
            self.lock().counters.count_fallback(Fallback::NoMapping);
            return None;
        };
        let extent = Extent::new(id_of(start), units);
        let known = self.pagemap.ensure(extent.head, units, &self.map);
        let mut state = self.lock();
        if !known {
            state.counters.count_fallback(Fallback::NoMapping);
            drop(state);
            // SAFETY: the system mapped it above, and the pagemap does not know of it.
            unsafe { self.map.unmap(start, bytes) };
            return None;
        }
        state.window.advance(hint, start, bytes);
        let mut state = self.await_recorded(state, extent);
        if !extent
            .units()
            .all(|id| self.pagemap.unit(id).kind() == Kind::None)
        {
            // Booked as a hole in between, and it stays one: the backend serves this request.
            state.counters.count_fallback(Fallback::NoMapping);
            drop(state);
            // SAFETY: the system mapped it above, and on the books it is still what it was before.
            unsafe { self.map.unmap(start, bytes) };
            return None;
        }
        state.space.track_new(extent);
        Some((state, extent))
    }

    /// Finds a window of addresses of our own, far below those that the system gives out, where neighbours stay ours, and
    /// puts a witness before its first block. Answers where the next mapping should go.
    #[cold]
    fn open_window(&self) -> usize {
        let Some(start) = AddressWindow::place(self.map.default_address()) else {
            return 0;
        };
        let page_bytes = self.geometry().page_bytes();
        if self.map.reserve_at(start - page_bytes, page_bytes) {
            self.reference_page.store(start - page_bytes, Relaxed);
        }
        self.lock().window.open(start);
        start
    }

    /// The system gave us addresses that another of our threads has just unmapped, and not booked yet.
    fn await_recorded<'a>(&'a self, mut state: Locked<'a>, extent: Extent) -> Locked<'a> {
        for _ in 0..RECORD_TRIES {
            let booked = |id| matches!(self.pagemap.unit(id).kind(), Kind::None | Kind::Hole);
            if extent.units().all(booked) {
                break;
            }
            drop(state);
            self.map.yield_now();
            state = self.lock();
        }
        state
    }
}
