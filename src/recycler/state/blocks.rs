//! Live blocks on the books: pages handed out, and the slack behind them.

use crate::core::amount::Pages;
use crate::core::extent::Extent;
use crate::core::geometry::Need;
use crate::core::page_ledger::Column;
use crate::core::unit::{Flags, Kind, Unit, UnitId};
use crate::state::space::Space;

/// What became of the pages of an extent that was made live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocation {
    pub recycled_pages: Pages,
    pub fresh_pages: Pages,
}

impl Space {
    /// Makes an extent of ours the block for `need`. `from` is where its pages are booked now.
    pub fn mark_live(&mut self, extent: Extent, need: Need, from: Column) -> Allocation {
        let full = self.geometry.pages_per_unit();
        let (mut before, mut fresh_pages) = (Pages::NONE, Pages::NONE);
        let head = self.unit(extent.head);
        let (mut last, mut behind) = (head, extent.len);
        for unit in self.units(extent) {
            behind -= 1;
            let held = unit.populated();
            let populated = if behind == 0 {
                self.populated_to(held, need.tail)
            } else {
                full
            };
            last = unit;
            before += held;
            if populated > held {
                fresh_pages += populated - held;
                unit.set_populated(populated);
            }
        }
        for end in [head, last] {
            end.label(Kind::Live, extent.len);
        }
        head.set_pages(need.pages);
        head.set_stamp(self.now_ms);
        head.remove_flags(Flags::PINNED.with(Flags::FREED));
        self.ledger.count_block();
        self.ledger.transfer(Column::System, from, fresh_pages);
        self.ledger.transfer(from, Column::Live, need.pages);
        self.note_slack(extent, (head, last), need, from);
        Allocation {
            recycled_pages: before,
            fresh_pages,
        }
    }

    /// Pages of a last unit that may be resident once the program has touched `tail` of them: the page of the last
    /// fault may be a large one, and reach behind the block.
    fn populated_to(&self, before: Pages, tail: Pages) -> Pages {
        if before >= tail {
            return before;
        }
        let per_fault = self.geometry.pages(self.fault_bytes).max(Pages::new(1));
        tail.next_multiple_of(per_fault)
    }

    /// The same for a block that changed its size: it is as old as it was.
    pub fn mark_live_again(&mut self, extent: Extent, need: Need, born_ms: u32) -> Allocation {
        let got = self.mark_live(extent, need, Column::Moving);
        self.unit(extent.head).set_stamp(born_ms);
        got
    }

    /// Takes a block out of use: the extent is `Busy`, and the caller's, with these pages.
    pub fn mark_busy(&mut self, extent: Extent, to: Column) -> Pages {
        self.end_block(extent, to);
        self.label(extent, Kind::Busy);
        self.populated(extent)
    }

    /// Ends a block: all its pages go to a column, and the caller labels the extent as what it is to be.
    pub fn end_block(&mut self, extent: Extent, to: Column) {
        let head = self.unit(extent.head);
        let need = self.geometry.need_of(head.pages(), extent.len);
        self.forget_slack(extent, need, to);
        self.ledger.uncount_block();
        self.ledger.transfer(Column::Live, to, need.pages);
        head.set_pages(Pages::NONE);
    }

    /// The request that a live block serves.
    pub fn need_of(&self, extent: Extent) -> Need {
        let pages = self.unit(extent.head).pages();
        self.geometry.need_of(pages, extent.len)
    }

    pub fn slack_of(&self, extent: Extent, need: Need) -> Pages {
        need.slack(self.unit(extent.end() - 1))
    }

    /// Puts a block with slack, of these first and last units, at the end of the queue.
    #[inline]
    fn note_slack(&mut self, extent: Extent, ends: (&Unit, &Unit), need: Need, from: Column) {
        let (head, last) = ends;
        let slack = need.slack(last);
        if slack == Pages::NONE {
            return;
        }
        self.ledger.transfer(from, Column::Slack, slack);
        last.set_stamp(self.now_ms);
        self.with_slack.push_last(self.pagemap, extent.head, head);
    }

    /// Undoes `note_slack`, before the block or its pages change.
    pub fn forget_slack(&mut self, extent: Extent, need: Need, to: Column) {
        let slack = self.slack_of(extent, need);
        if slack == Pages::NONE {
            return;
        }
        self.ledger.transfer(Column::Slack, to, slack);
        let head = self.unit(extent.head);
        self.with_slack.remove(self.pagemap, head);
    }

    /// Takes pages beyond the need, up to this many in the last unit, for slack again.
    pub fn offer_slack(&mut self, extent: Extent, populated: Pages, from: Column) {
        let (head, last) = (self.unit(extent.head), self.unit(extent.end() - 1));
        last.set_populated(populated);
        self.note_slack(extent, (head, last), self.need_of(extent), from);
    }

    /// Marks a block whose slack left the queue to be returned.
    pub fn pin(&mut self, head: UnitId) {
        let unit = self.unit(head);
        unit.add_flags(Flags::PINNED);
        self.pinned.push_last(self.pagemap, head, unit);
    }

    pub fn unpin(&mut self, head: UnitId) {
        let unit = self.unit(head);
        unit.remove_flags(Flags::PINNED);
        self.pinned.remove(self.pagemap, unit);
    }
}
