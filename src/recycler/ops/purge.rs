//! Keeps the budget: purges the oldest cached pages, then slack, until the footprint fits.
//!
//! Invariant: an extent is `Purging` and owned by the calling thread while its pages are dropped.

use crate::core::geometry::Pages;
use crate::core::page_ledger::Column;
use crate::core::unit::{Extent, FreeKind, Kind};
use crate::os::vm::Vm;
use crate::state::recycler::{Recycler, State};
use crate::state::stats::Fallback;
use flarena_sys::headroom;

/// Extents that are taken under one acquisition of the lock.
const BATCH: usize = 32;

/// An extent whose pages this thread drops.
#[derive(Clone, Copy, Default)]
struct PurgedExtent {
    extent: Extent,
    pages: Pages,
    /// The system kept the pages.
    is_refused: bool,
}

impl<V: Vm> Recycler<V> {
    /// Makes room for fresh pages that the program is about to touch.
    #[cold]
    pub fn make_room_for(&self, fresh_pages: Pages) {
        headroom::charge(self.geometry().bytes(fresh_pages).count());
        self.purge_excess();
    }

    /// Purges what exceeds the budget.
    pub fn purge_excess(&self) {
        loop {
            let state = self.lock();
            let excess = state.space.tolerance.excess(&state.space.ledger);
            if excess == Pages::NONE {
                return;
            }
            let has_cached = state.space.ledger.cached() > Pages::NONE;
            drop(state);
            let returned = if has_cached {
                self.purge_cached(excess)
            } else {
                self.purge_slack(|_| true)
            };
            if returned == Pages::NONE {
                return;
            }
            self.lock().space.record_churn(Pages::NONE, returned);
        }
    }

    /// Drops about `wanted` of the oldest cached pages; their extents stay mapped. Returns the
    /// number of pages taken.
    pub fn purge_cached(&self, wanted: Pages) -> Pages {
        let mut batch = [PurgedExtent::default(); BATCH];
        let mut state = self.lock();
        let mut taken = Pages::NONE;
        let mut count = 0;
        for item in &mut batch {
            if taken >= wanted {
                break;
            }
            let Some(extent) = state.take_oldest(wanted - taken) else {
                break;
            };
            *item = PurgedExtent {
                extent,
                pages: state.remove_from_column(extent, Column::Purging),
                is_refused: false,
            };
            state.space.pagemap.label(extent, Kind::Purging);
            taken += item.pages;
            count += 1;
        }
        let batch = batch.get_mut(..count).unwrap_or(&mut []);
        drop(state);
        for item in batch.iter_mut() {
            let (start, bytes) = (item.extent.start(), item.extent.bytes());
            // SAFETY: the extent is `Purging` and owned by this thread.
            item.is_refused = !unsafe { self.vm.discard(start, bytes) };
        }
        let mut state = self.lock();
        for item in batch.iter() {
            if item.is_refused {
                state.counters.count_fallback(Fallback::DiscardRefused);
                state = self.unmap(state, item.extent);
            } else {
                state.record_purged(item.pages);
                state.insert_empty(item.extent);
            }
        }
        taken
    }
}

impl State {
    /// Takes the first units of the oldest cached extent, with about `wanted` pages.
    fn take_oldest(&mut self, wanted: Pages) -> Option<Extent> {
        let head = self.space.cached.oldest()?;
        let whole = Extent::new(head, self.space.unit(head).len());
        let mut pages = Pages::NONE;
        let mut len = 0;
        while len < whole.len && pages < wanted {
            pages += self.space.unit(head + len).populated();
            len += 1;
        }
        Some(
            self.space
                .take_part(whole, Extent::new(head, len.max(1)), FreeKind::Cached),
        )
    }

    /// Transfers the pages of a cached extent to another column of the ledger.
    pub fn remove_from_column(&mut self, extent: Extent, to: Column) -> Pages {
        let pages = self.space.populated(extent);
        self.space.ledger.transfer(Column::Cached, to, pages);
        pages
    }

    /// Records that purging pages were returned to the system.
    pub fn record_purged(&mut self, pages: Pages) {
        let ledger = &mut self.space.ledger;
        ledger.transfer(Column::Purging, Column::System, pages);
        ledger.totals.returned += pages;
    }
}
