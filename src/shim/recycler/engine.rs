//! The recycler over any map: requests and frees.
//!
//! A run is in one thread's hands (`BUSY`, or a block that is not published yet) while that thread is in
//! a system call, so the lock is never held across one.

use super::amount::{Bytes, Pages};
use super::block::Occupied;
use super::ledger::Column;
use super::map::Map;
use super::space::{Run, Space};
use super::stats::{Fallback, Tally};
use super::table::Table;
use super::unit::{address, flag, kind, Geometry, Need, UNIT_BYTES};
use crate::process::lock::{Guard, Lock};
use flarena_shared::defaults::{GOVERNOR_START_CACHED_BYTES, GOVERNOR_START_LARGE_BYTES};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Blocks from here on get huge pages even when their last unit is not full: 2 MiB in 32 at most is not
/// covered by them.
const HUGE_UNITS: u32 = 16;

pub struct State {
    pub space: Space,
    pub tally: Tally,
    /// Where the next mapping should go; 0 before the first.
    pub hint: usize,
    /// Addresses that the kernel gives to nobody who does not ask for them: only there a hole is ours to
    /// fill again. Elsewhere another thread may hold it already.
    pub window: std::ops::Range<usize>,
    /// Threads inside a system call with runs in their hands.
    pub in_flight: u32,
    /// A governor ages the cache; it is started when large blocks hold much.
    pub governed: bool,
    /// The system refused a thread: until there is one nothing ages the cache.
    pub ungovernable: bool,
    /// Moves that lost their target; after a few of them moving stops.
    pub lost_targets: u32,
    /// The slack that is left is not to be had: the program locked it.
    pub slack_refused: bool,
    /// A forked child has not yet dropped the cache it inherited.
    pub inherited: bool,
}

pub struct Recycler<M: Map> {
    pub map: M,
    pub table: &'static Table,
    pub state: Lock<State>,
    page_shift: AtomicU32,
    /// Large blocks once held `GOVERNOR_START_LARGE_BYTES`, or left `GOVERNOR_START_CACHED_BYTES` behind.
    pub heavy: AtomicBool,
    /// How often flags were taken off a block.
    pub cleansed: AtomicU64,
}

pub type Locked<'a> = Guard<'a, State>;

impl<M: Map> Recycler<M> {
    pub const fn new(map: M, table: &'static Table) -> Self {
        let state = State {
            space: Space::new(table),
            tally: Tally::new(),
            hint: 0,
            window: 0..0,
            in_flight: 0,
            governed: false,
            ungovernable: false,
            lost_targets: 0,
            slack_refused: false,
            inherited: false,
        };
        Recycler {
            map,
            table,
            state: Lock::new(state),
            page_shift: AtomicU32::new(12),
            heavy: AtomicBool::new(false),
            cleansed: AtomicU64::new(0),
        }
    }

    pub fn configure(&self, page_shift: u32, memory_limit: Option<Bytes>) {
        let mut state = self.state.lock();
        state.space.geometry = Geometry { page_shift };
        state.space.tolerance.geometry = Geometry { page_shift };
        state.space.tolerance.memory_limit = memory_limit;
        self.page_shift.store(page_shift, Relaxed);
    }

    pub fn geometry(&self) -> Geometry {
        Geometry {
            page_shift: self.page_shift.load(Relaxed),
        }
    }

    pub fn lock(&self) -> Locked<'_> {
        let mut state = self.state.lock();
        state.space.now_ms = self.map.now_ms();
        if state.inherited {
            state.inherited = false;
            drop(state);
            self.trim();
            return self.lock();
        }
        state
    }

    /// Debug builds compare the ledger with the table, which was written independently of it.
    #[inline]
    pub fn check(&self) {
        #[cfg(debug_assertions)]
        self.state.lock().space.check_ledger();
    }

    /// A block of this size, 2 MiB-aligned; None when the system gives no memory.
    pub fn alloc(&self, bytes: usize, zeroed: bool) -> Option<usize> {
        let need = self.geometry().need(bytes)?;
        let taken = self.take(need, zeroed);
        self.check();
        let (run, got) = taken?;
        if got.fresh_pages > Pages::NONE {
            self.settle();
        }
        let start = address(run.head);
        if zeroed && got.recycled_pages > Pages::NONE {
            self.map.zero(start, self.geometry().size(need.pages));
        }
        Some(start)
    }

    fn take(&self, need: Need, zeroed: bool) -> Option<(Run, Occupied)> {
        let mut state = self.lock();
        if let Some(run) = state.space.take_fit(need.units, kind::CACHED) {
            let got = state.space.occupy(run, need, Column::Cached);
            state.tally.served(got, Pages::NONE);
            if got.fresh_pages > Pages::NONE {
                state.space.note_churn(got.fresh_pages, Pages::NONE);
            }
            self.notice_weight(&state);
            return Some((run, got));
        }
        let (mut state, target) = if state.space.may_grow(need) {
            self.vacant(state, need.units)?
        } else {
            let (state, target, filled) = self.target(state, need.units)?;
            (self.fill(state, target, filled, need.units)?, target)
        };
        let fresh = state.fresh_part(target);
        state.in_flight += 1;
        drop(state);
        self.prepare_fresh(fresh, need, zeroed);
        let mut state = self.lock();
        state.in_flight -= 1;
        let got = state.space.occupy(target, need, Column::Moving);
        state.tally.served(got, Pages::NONE);
        state.space.note_churn(got.fresh_pages, Pages::NONE);
        self.notice_weight(&state);
        Some((target, got))
    }

    pub fn notice_weight(&self, state: &Locked<'_>) {
        let held = state.space.geometry.bytes(state.space.ledger.footprint());
        if held >= Bytes(GOVERNOR_START_LARGE_BYTES) && !self.heavy.load(Relaxed) {
            self.heavy.store(true, Relaxed);
        }
    }

    /// Pristine flags and the right kind of pages for the part of a target that nothing was moved into.
    pub fn prepare_fresh(&self, fresh: Run, need: Need, zeroed: bool) {
        if fresh.len == 0 {
            return;
        }
        let (start, bytes) = (address(fresh.head), fresh.len as usize * UNIT_BYTES);
        let odd = |id| self.table.unit(id).has(flag::HUGE | flag::ODD);
        if fresh.units().any(odd) && self.map.renew(start, bytes) {
            for id in fresh.units() {
                self.table.unit(id).set_flags(flag::SEAM);
            }
        }
        // Where the program must ask for huge pages, it may ask for itself: docs/measurements.md.
        if !self.map.has_huge_unasked() {
            return;
        }
        let full = need.tail == self.geometry().pages_per_unit();
        // Cleared memory is often sparse: the system's policy decides there.
        if zeroed || need.units < 2 || !(full || need.units >= HUGE_UNITS) {
            return;
        }
        let huge = Run {
            head: fresh.head,
            len: if full { fresh.len } else { fresh.len - 1 },
        };
        if huge.len > 0 {
            self.map.advise_huge(start, huge.len as usize * UNIT_BYTES);
            for id in huge.units() {
                self.table.unit(id).raise(flag::HUGE | flag::SEAM);
            }
            if !full {
                self.table.unit(huge.end()).raise(flag::SEAM);
            }
        }
    }

    /// An address range of `units`, `BUSY`, mapped. Its first units may already hold cached pages; the
    /// answer says how many. None: no memory for mappings.
    fn target<'a>(&'a self, mut state: Locked<'a>, units: u32) -> Option<(Locked<'a>, Run, u32)> {
        if let Some((run, filled)) = state.grow_cached(units) {
            return Some((state, run, filled));
        }
        let (state, run) = self.vacant(state, units)?;
        Some((state, run, 0))
    }

    /// The live block that begins at this address.
    #[inline]
    pub fn find(&self, start: usize) -> Option<Run> {
        if !start.is_multiple_of(UNIT_BYTES) {
            return None;
        }
        let head = u32::try_from(start / UNIT_BYTES).ok()?;
        let unit = self.table.find(head)?;
        (unit.kind() == kind::LIVE).then(|| Run {
            head,
            len: unit.len(),
        })
    }

    pub fn usable_size(&self, start: usize) -> Option<usize> {
        let run = self.find(start)?;
        Some(self.geometry().size(self.table.unit(run.head).pages()))
    }

    /// Caches a block's pages; false when the address is not a block of ours.
    pub fn free(&self, start: usize) -> bool {
        let Some(run) = self.find(start) else {
            return false;
        };
        let clean = self.clean(run);
        let state = self.lock();
        let head = state.space.unit(run.head);
        if !clean {
            head.raise(flag::ODD);
        }
        if head.has(flag::PINNED) {
            // The thread that returns its slack finishes the job.
            head.raise(flag::FREED);
            return true;
        }
        self.finish_free(state, run);
        self.check();
        true
    }

    /// The end of `free`: the block is nobody's, and not pinned.
    pub fn finish_free(&self, mut state: Locked<'_>, run: Run) {
        let odd = state.space.unit(run.head).has(flag::ODD);
        if odd {
            state.space.vacate(run, Column::Moving);
            state.tally.fell_back(Fallback::OddFlags);
            self.unmap(state, run);
            return;
        }
        state.space.vacate(run, Column::Cached);
        state.space.give(run, kind::CACHED);
        let cap = state
            .space
            .geometry
            .pages(Bytes(GOVERNOR_START_CACHED_BYTES));
        let excess = state.space.ledger.cached().saturating_sub(cap);
        if excess == Pages::NONE || state.governed {
            return;
        }
        self.heavy.store(true, Relaxed);
        if state.ungovernable {
            drop(state);
            self.return_cached(excess);
        }
    }
}

impl State {
    /// Cached units with enough empty ones right behind them: the pages stay where they are.
    fn grow_cached(&mut self, units: u32) -> Option<(Run, u32)> {
        let space = &mut self.space;
        let (head, len) = space.cached.largest(space.table)?;
        let whole = Run { head, len };
        let room = space.span_at(whole.end(), kind::EMPTY)?;
        if len >= units || len + room.len < units {
            return None;
        }
        let pages = space.populated(whole);
        space.carve(whole, whole, kind::CACHED);
        space.carve(
            room,
            Run {
                head: room.head,
                len: units - len,
            },
            kind::EMPTY,
        );
        space.ledger.transfer(Column::Cached, Column::Moving, pages);
        let joined = Run { head, len: units };
        space.label(joined, kind::BUSY);
        Some((joined, len))
    }

    /// The units of a target behind the last one that holds pages.
    pub fn fresh_part(&self, target: Run) -> Run {
        let held = target
            .units()
            .rev()
            .find(|id| self.space.unit(*id).populated() > Pages::NONE)
            .map_or(target.head, |last| last + 1);
        Run {
            head: held,
            len: target.end() - held,
        }
    }
}
