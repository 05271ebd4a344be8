//! Where the addresses of large blocks come from: empty mappings, holes, a window of our own, the system.

use super::engine::{Locked, Recycler, State};
use super::map::Map;
use super::space::Extent;
use super::tally::Fallback;
use super::unit::{address, id_of, Free, Kind, UNIT_BYTES};

/// How far below the first mapping our own window of addresses begins.
const WINDOW_DISTANCE: usize = 8 << 40;
const WINDOW_STEP: usize = 64 << 30;
const WINDOW_BYTES: usize = WINDOW_DISTANCE / 4 * 3;
/// How often to wait for another thread's books; it needs no more than one system call.
const BOOKING_TRIES: u32 = 1_000_000;

impl<M: Map> Recycler<M> {
    /// A mapped range without pages, `Busy`.
    pub fn vacant<'a>(&'a self, mut state: Locked<'a>, units: u32) -> Option<(Locked<'a>, Extent)> {
        if let Some(run) = state.space.take_fit(units, Free::Empty) {
            if !state.space.is_altered(run) {
                return Some((state, run));
            }
            drop(state);
            let renewed = self.make_fresh(run);
            state = self.lock();
            if renewed {
                return Some((state, run));
            }
            // Nobody may have it with the marks of another.
            state.space.give(run, Free::Empty);
        }
        if let Some(hole) = state.space.take_fit(units, Free::Hole) {
            drop(state);
            let mapped = self
                .map
                .reserve_at(address(hole.head), units as usize * UNIT_BYTES);
            state = self.lock();
            if mapped {
                state.space.adopt(hole);
                return Some((state, hole));
            }
            state.space.disown(hole);
        }
        let hint = state.hint;
        drop(state);
        let bytes = units as usize * UNIT_BYTES;
        let start = self.map.reserve(hint, bytes).or_else(|| {
            // Addresses or mappings ran out: give everything back, then ask again.
            self.trim();
            self.map.reserve(0, bytes)
        });
        let Some(start) = start else {
            self.lock().tally.fell_back(Fallback::NoMapping);
            return None;
        };
        let run = Extent {
            head: id_of(start),
            len: units,
        };
        let known = self.pagemap.ensure(run.head, units, &self.map);
        let mut state = self.lock();
        if !known {
            state.tally.fell_back(Fallback::NoMapping);
            drop(state);
            self.map.release(start, bytes);
            return None;
        }
        state.move_hint(hint, start, bytes);
        let mut state = self.await_booked(state, run);
        if !run
            .units()
            .all(|id| self.pagemap.unit(id).kind() == Kind::None)
        {
            // Booked as a hole in between, and it stays one: the backend serves this request.
            state.tally.fell_back(Fallback::NoMapping);
            drop(state);
            self.map.release(start, bytes);
            return None;
        }
        state.space.adopt(run);
        Some((state, run))
    }

    /// The system gave us addresses that another of our threads has just unmapped, and not booked yet.
    fn await_booked<'a>(&'a self, mut state: Locked<'a>, run: Extent) -> Locked<'a> {
        for _ in 0..BOOKING_TRIES {
            let booked = |id| matches!(self.pagemap.unit(id).kind(), Kind::None | Kind::Hole);
            if run.units().all(booked) {
                break;
            }
            drop(state);
            std::thread::yield_now();
            state = self.lock();
        }
        state
    }
}

impl State {
    fn move_hint(&mut self, hint: usize, got: usize, bytes: usize) {
        if self.hint == 0 {
            // A window of our own, far below, where neighbours stay ours.
            if got > 2 * WINDOW_DISTANCE {
                let start = (got - WINDOW_DISTANCE) / WINDOW_STEP * WINDOW_STEP;
                self.window = start..start + WINDOW_BYTES;
                self.hint = start;
            }
            return;
        }
        let next = if got == hint {
            got + bytes
        } else {
            hint + WINDOW_STEP
        };
        // At the end of the window the system chooses, and holes are filled.
        self.hint = if self.window.contains(&(next + bytes)) {
            next
        } else {
            hint
        };
    }

    pub fn in_window(&self, run: Extent) -> bool {
        self.window.contains(&address(run.head))
    }
}
