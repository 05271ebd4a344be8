//! Debug builds: the ledger against a walk of the pagemap.

use crate::core::amount::Pages;
use crate::core::extent::Extent;
use crate::core::unit::Kind;
use crate::state::space::Space;

impl Space {
    /// Panics when the pagemap tells of other pages than the ledger. Moving and purging pages are in no extent
    /// that could be told from another thread's; the rest is exact whenever the lock is free.
    pub fn check_ledger(&self) {
        let (mut blocks, mut live, mut slack, mut cached) =
            (0, Pages::NONE, Pages::NONE, Pages::NONE);
        self.pagemap.walk(|head, unit| {
            let extent = Extent::new(head, unit.len());
            match unit.kind() {
                Kind::Live => {
                    blocks += 1;
                    live += unit.pages();
                    slack += self.slack_of(extent, self.need_of(extent));
                }
                Kind::Cached => cached += self.populated(extent),
                Kind::Empty => assert_eq!(self.populated(extent), Pages::NONE, "empty: {extent:?}"),
                Kind::Hole | Kind::Busy | Kind::Purging => {}
                _ => return 1,
            }
            extent.len
        });
        let ledger = &self.ledger;
        assert_eq!(
            (blocks, live, slack, cached),
            (
                ledger.block_count(),
                ledger.live(),
                ledger.slack(),
                ledger.cached()
            ),
            "blocks, live, slack and cached pages: the pagemap, then {ledger:?}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::page_ledger::Column;
    use crate::testing::world::{World, MIB};

    #[test]
    #[should_panic(expected = "the pagemap, then")]
    fn a_page_that_the_ledger_books_elsewhere_than_the_pagemap_is_noticed() {
        let mut world = World::new();
        assert!(world.alloc(4 * MIB, false));
        let page = Pages::new(1);
        let mut state = world.recycler.state.lock();
        state
            .space
            .ledger
            .transfer(Column::Live, Column::Cached, page);
        drop(state);
        world.recycler.check();
    }
}
