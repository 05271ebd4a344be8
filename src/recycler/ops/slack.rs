//! Purging slack: the pages of a live block's last unit that the block does not need.

use crate::core::amount::Pages;
use crate::core::extent::Extent;
use crate::core::page_ledger::Column;
use crate::core::unit::{address, Flags, UnitId};
use crate::os::vm::Vm;
use crate::state::recycler::{Recycler, State};
use crate::state::stats::Fallback;

/// How often slack that the system refuses is passed over in one call. One lap of the queue is less, unless other
/// threads change it meanwhile.
const REFUSALS: usize = 4096;

/// What became of the first slack in the queue.
enum Slack {
    NoneRipe,
    /// Of the block that begins here.
    Refused(UnitId),
    Returned(Pages),
}

/// A block whose slack is being returned.
#[derive(Clone, Copy)]
pub struct Pinned {
    extent: Extent,
    from: usize,
    bytes: usize,
    pages: Pages,
}

impl<M: Vm> Recycler<M> {
    /// Returns the slack of one block, of those in the queue for which `ripe` (of the time stamp) holds.
    pub fn purge_slack(&self, ripe: impl Fn(u32) -> bool + Copy) -> Pages {
        let mut lap_from = None;
        for _ in 0..REFUSALS {
            match self.purge_first_slack(ripe, lap_from) {
                Slack::NoneRipe => return Pages::NONE,
                Slack::Refused(head) => lap_from = lap_from.or(Some(head)),
                Slack::Returned(pages) => return pages,
            }
        }
        Pages::NONE
    }

    fn purge_first_slack(&self, ripe: impl Fn(u32) -> bool, lap_from: Option<UnitId>) -> Slack {
        let mut state = self.lock();
        let Some(pinned) = state.pin_slack(ripe, lap_from) else {
            return Slack::NoneRipe;
        };
        drop(state);
        // SAFETY: pages behind the end of a pinned block: the program does not have them, and while it is pinned
        // neither realloc nor free hands them on.
        let dropped = unsafe { self.map.discard(pinned.from, pinned.bytes) };
        let mut state = self.lock();
        state.end_purge(&pinned, dropped);
        let head = state.space.unit(pinned.extent.head);
        if head.has(Flags::FREED) {
            head.remove_flags(Flags::FREED);
            self.finish_free(state, pinned.extent, head);
        }
        if dropped {
            Slack::Returned(pinned.pages)
        } else {
            Slack::Refused(pinned.extent.head)
        }
    }
}

impl State {
    /// Pins the first block in the slack queue, when it is ripe and not `but`, and takes its slack off the books.
    pub fn pin_slack(&mut self, ripe: impl Fn(u32) -> bool, but: Option<UnitId>) -> Option<Pinned> {
        let space = &mut self.space;
        let head = space.with_slack.first().filter(|head| Some(*head) != but)?;
        let extent = Extent::new(head, space.unit(head).len());
        let last = space.unit(extent.end() - 1);
        if !ripe(last.stamp()) {
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

    /// Ends what `pin_slack` began. Pages that the system keeps (the program locked them) are slack again.
    fn end_purge(&mut self, pinned: &Pinned, dropped: bool) {
        self.space.unpin(pinned.extent.head);
        self.slack_refused = !dropped;
        if dropped {
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
    fn slack_is_as_old_as_the_block_and_not_as_the_pages() {
        let mut world = World::new();
        assert!(world.alloc(4 * MIB, false));
        let block = world.take(0).expect("it was just made");
        world.free(block);
        world.map().now.set(DECAY_MS - 1);
        assert!(world.alloc(3 * MIB, false));
        for (later_ms, slack) in [(DECAY_MS - 1, MIB), (DECAY_MS, 0)] {
            world.map().now.set(DECAY_MS - 1 + later_ms);
            world.recycler.decay_round(DECAY_MS);
            assert_eq!(world.recycler.stats().slack_bytes, slack as u64);
        }
    }
}
