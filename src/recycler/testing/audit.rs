//! Checks the recycler's records against each other, the program's blocks and the model kernel.

use crate::core::extent_pool::{ByAge, List, WithSlack};
use crate::core::geometry::Pages;
use crate::core::unit::{Kind, UNIT_BYTES};
use crate::state::space::Space;
use crate::testing::model::PAGE;
use crate::testing::world::{Block, World};

impl World {
    /// Asserts that the records agree with each other, the blocks and the model kernel.
    pub fn audit(&self) {
        let state = self.recycler.lock();
        let space = &state.space;
        let ledger = &space.ledger;
        let in_flight = ledger.moving() + ledger.purging();
        assert_eq!(
            in_flight,
            Pages::NONE,
            "no pages are moving or being purged"
        );
        let mut cached = (Pages::NONE, 0);
        for (kind, pool) in [(Kind::Cached, &space.cached), (Kind::Empty, &space.empty)] {
            let (mut units, mut next) = (0, pool.oldest());
            while let Some(head) = next {
                let extent = space
                    .extent_at(head, kind)
                    .expect("a pool contains only extents of its kind");
                units += u64::from(extent.len);
                if kind == Kind::Cached {
                    cached.0 += space.populated(extent);
                    assert!(extent
                        .units()
                        .all(|id| space.unit(id).populated() > Pages::NONE));
                } else {
                    assert_eq!(space.populated(extent), Pages::NONE);
                }
                next = List::<ByAge>::after(space.pagemap, head);
            }
            assert_eq!(units, pool.units());
            cached.1 += units;
        }
        assert_eq!(cached.0, ledger.cached());
        assert_eq!(self.queued_slack(space), ledger.slack());
        assert_eq!(space.pinned.first(), None, "no block is pinned");
        let pages = |block: &Block| Pages::new(block.bytes.div_ceil(PAGE) as u64);
        assert_eq!(self.blocks.iter().map(pages).sum::<Pages>(), ledger.live());
        assert_eq!(self.blocks.len() as u64, ledger.live_blocks);
        let units = |block: &Block| block.bytes.div_ceil(UNIT_BYTES) as u64;
        let live: u64 = self.blocks.iter().map(units).sum();
        assert!(self.vm().mapped_units() as u64 >= live + cached.1);
    }

    fn queued_slack(&self, space: &Space) -> Pages {
        let (mut slack, mut next) = (Pages::NONE, space.with_slack.first());
        while let Some(head) = next {
            let extent = space
                .extent_at(head, Kind::Live)
                .expect("a block with slack is live");
            slack += space.slack_of(extent, space.need_of(extent));
            next = List::<WithSlack>::after(space.pagemap, head);
        }
        slack
    }

    /// Asserts that the records are exact, which holds while the kernel refuses no call.
    pub fn audit_exactly(&self) {
        self.audit();
        let state = self.recycler.lock();
        let ledger = &state.space.ledger;
        assert_eq!(
            state.space.tolerance.excess(ledger),
            Pages::NONE,
            "the footprint exceeds the budget: {ledger:?}"
        );
        assert!(Pages::new(self.vm().resident() as u64) <= ledger.footprint());
        let units = |block: &Block| block.bytes.div_ceil(UNIT_BYTES) as u64;
        let live: u64 = self.blocks.iter().map(units).sum();
        let free = state.space.cached.units() + state.space.empty.units();
        assert_eq!(self.vm().mapped_units() as u64, live + free);
    }
}
