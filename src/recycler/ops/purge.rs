//! Keeping the budget: the oldest cached pages go back to the system, then slack.

use crate::core::amount::Pages;
use crate::core::extent::Extent;
use crate::core::page_ledger::Column;
use crate::core::unit::{FreeKind, Kind};
use crate::os::vm::Vm;
use crate::state::recycler::{Recycler, State};
use crate::state::stats::Fallback;

/// Extents taken per hold of the lock.
const BATCH: usize = 32;

#[derive(Clone, Copy, Default)]
struct Parcel {
    extent: Extent,
    pages: Pages,
    refused: bool,
}

impl<M: Vm> Recycler<M> {
    /// Keeps the budget: gives the oldest cached pages back, then slack, until the footprint fits.
    /// Extents before fresh pages are touched.
    pub fn purge_excess(&self) {
        loop {
            let state = self.lock();
            let excess = state.space.tolerance.excess(&state.space.ledger);
            if excess == Pages::NONE {
                return;
            }
            let cached = state.space.ledger.cached() > Pages::NONE;
            drop(state);
            let returned = if cached {
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

    /// Drops about `wanted` of the oldest cached pages; their addresses stay ours. Answers pages.
    pub fn purge_cached(&self, wanted: Pages) -> Pages {
        let mut parcels = [Parcel::default(); BATCH];
        let mut state = self.lock();
        let mut taken = Pages::NONE;
        let mut count = 0;
        for parcel in &mut parcels {
            if taken >= wanted {
                break;
            }
            let Some(extent) = state.take_oldest(wanted - taken) else {
                break;
            };
            *parcel = Parcel {
                extent,
                pages: state.remove_from_column(extent, Column::Purging),
                refused: false,
            };
            state.space.pagemap.label(extent, Kind::Purging);
            taken += parcel.pages;
            count += 1;
        }
        let parcels = parcels.get_mut(..count).unwrap_or(&mut []);
        drop(state);
        for parcel in parcels.iter_mut() {
            let (start, bytes) = (parcel.extent.start(), parcel.extent.bytes());
            // SAFETY: `Purging` since it was taken out of the cache above.
            parcel.refused = !unsafe { self.map.discard(start, bytes) };
        }
        let mut state = self.lock();
        for parcel in parcels.iter() {
            if parcel.refused {
                state.counters.count_fallback(Fallback::DiscardRefused);
                state = self.unmap(state, parcel.extent);
            } else {
                state.record_purged(parcel.pages);
                state.empty_out(parcel.extent);
            }
        }
        taken
    }
}

impl State {
    /// The oldest cached extent, of about as many pages as wanted.
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

    /// Takes a cached extent's pages off the cache's books.
    pub fn remove_from_column(&mut self, extent: Extent, to: Column) -> Pages {
        let pages = self.space.populated(extent);
        self.space.ledger.transfer(Column::Cached, to, pages);
        pages
    }

    /// Pages that were taken off went back to the system.
    pub fn record_purged(&mut self, pages: Pages) {
        self.space
            .ledger
            .transfer(Column::Purging, Column::System, pages);
        self.counters.returned += pages;
    }
}
