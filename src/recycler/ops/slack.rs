//! Purges slack: the resident pages in a live block's last unit behind the block's end.
//!
//! Invariant: the block is pinned while its slack is purged. A realloc of a pinned block waits. A
//! free of it sets `FREED`, and the purging thread finishes the free.

use crate::core::geometry::Pages;
use crate::core::page_ledger::Column;
use crate::core::unit::{address, Extent, Flags, UnitId};
use crate::os::vm::Vm;
use crate::state::recycler::{Recycler, State};
use crate::state::stats::Fallback;

/// The most refusals in one call. A call usually ends earlier, when the first refused block is
/// again the first in the queue; but another thread may have freed that block.
const MAX_REFUSALS: usize = 4096;

/// The result for the first block in the queue.
enum SlackPurge {
    NoneExpired,
    /// The system kept the pages of the block that begins here.
    Refused(UnitId),
    Returned(Pages),
}

/// A block whose slack is being purged.
#[derive(Clone, Copy)]
pub struct Pinned {
    extent: Extent,
    /// The address of the slack.
    from: usize,
    bytes: usize,
    pages: Pages,
}

impl<V: Vm> Recycler<V> {
    /// Purges the slack of the first block in the queue whose time stamp is expired. Returns the
    /// number of pages.
    pub fn purge_slack(&self, is_expired: impl Fn(u32) -> bool + Copy) -> Pages {
        let mut first_refused = None;
        for _ in 0..MAX_REFUSALS {
            match self.purge_first_slack(is_expired, first_refused) {
                SlackPurge::NoneExpired => return Pages::NONE,
                SlackPurge::Refused(head) => first_refused = first_refused.or(Some(head)),
                SlackPurge::Returned(pages) => return pages,
            }
        }
        Pages::NONE
    }

    fn purge_first_slack(
        &self,
        is_expired: impl Fn(u32) -> bool,
        first_refused: Option<UnitId>,
    ) -> SlackPurge {
        let mut state = self.lock();
        let Some(pinned) = state.pin_slack(is_expired, first_refused) else {
            return SlackPurge::NoneExpired;
        };
        drop(state);
        // SAFETY: the pages lie behind the end of a pinned block. The program does not use them,
        // and neither free nor realloc reuses them while the block is pinned.
        let is_dropped = unsafe { self.vm.discard(pinned.from, pinned.bytes) };
        let mut state = self.lock();
        state.finish_slack_purge(&pinned, is_dropped);
        let head = state.space.unit(pinned.extent.head);
        if head.has(Flags::FREED) {
            head.remove_flags(Flags::FREED);
            self.finish_free(state, pinned.extent, head);
        }
        if is_dropped {
            SlackPurge::Returned(pinned.pages)
        } else {
            SlackPurge::Refused(pinned.extent.head)
        }
    }
}

impl State {
    /// Pins the first block in the slack queue, and records its slack as purging. None: its slack
    /// is not expired, or it is the block `except`.
    pub fn pin_slack(
        &mut self,
        is_expired: impl Fn(u32) -> bool,
        except: Option<UnitId>,
    ) -> Option<Pinned> {
        let space = &mut self.space;
        let head = space
            .with_slack
            .first()
            .filter(|head| Some(*head) != except)?;
        let extent = Extent::new(head, space.unit(head).len());
        let last = space.unit(extent.end() - 1);
        if !is_expired(last.stamp()) {
            return None;
        }
        let need = space.need_of(extent);
        let pages = space.slack_of(extent, need);
        space.remove_slack(extent, need, Column::Purging);
        last.set_populated(need.last_unit_pages);
        space.pin(head);
        let from = address(extent.end() - 1) + space.geometry.size(need.last_unit_pages);
        Some(Pinned {
            extent,
            from,
            bytes: space.geometry.size(pages),
            pages,
        })
    }

    /// If the system refused to drop the pages, because the program locked them, they are slack
    /// again.
    fn finish_slack_purge(&mut self, pinned: &Pinned, is_dropped: bool) {
        self.space.unpin(pinned.extent.head);
        self.slack_refused = !is_dropped;
        if is_dropped {
            self.record_purged(pinned.pages);
            return;
        }
        self.counters.count_fallback(Fallback::DiscardRefused);
        let need = self.space.need_of(pinned.extent);
        self.space.restore_slack(
            pinned.extent,
            need.last_unit_pages + pinned.pages,
            Column::Purging,
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::world::{World, DECAY_MS, MIB};

    #[test]
    fn slack_has_the_age_of_its_block() {
        let mut world = World::new();
        assert!(world.alloc(4 * MIB, false));
        let block = world.take(0).expect("it was just allocated");
        world.free(block);
        world.vm().now.set(DECAY_MS - 1);
        assert!(world.alloc(3 * MIB, false));
        for (later_ms, slack) in [(DECAY_MS - 1, MIB), (DECAY_MS, 0)] {
            world.vm().now.set(DECAY_MS - 1 + later_ms);
            world.recycler.decay_round(DECAY_MS);
            assert_eq!(world.recycler.stats().slack_bytes, slack as u64);
        }
    }
}
