//! Live blocks on the books: pages handed out, and the slack behind them.

use super::amount::Pages;
use super::ledger::Column;
use super::space::{Extent, Space};
use super::unit::{Flags, Kind, Need, UnitId};

/// What became of the pages of an extent that was made live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupied {
    pub recycled_pages: Pages,
    pub fresh_pages: Pages,
}

impl Space {
    /// Makes an extent of ours the block for `need`. `from` is where its pages are booked now.
    pub fn occupy(&mut self, extent: Extent, need: Need, from: Column) -> Occupied {
        let full = self.geometry.pages_per_unit();
        let (mut before, mut fresh_pages) = (Pages::NONE, Pages::NONE);
        for id in extent.units() {
            let unit = self.unit(id);
            let held = unit.populated();
            let is_last = id + 1 == extent.end();
            let populated = if is_last {
                self.populated_to(held, need.tail)
            } else {
                full
            };
            before += held;
            if populated > held {
                fresh_pages += populated - held;
                unit.set_populated(populated);
            }
        }
        self.label(extent, Kind::Live);
        let head = self.unit(extent.head);
        head.set_pages(need.pages);
        head.set_stamp(self.now_ms);
        head.lower(Flags::PINNED.with(Flags::FREED));
        self.ledger.count_block();
        self.ledger.transfer(Column::System, from, fresh_pages);
        self.ledger.transfer(from, Column::Live, need.pages);
        self.note_slack(extent, need, from);
        Occupied {
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
    pub fn occupy_again(&mut self, extent: Extent, need: Need, born_ms: u32) -> Occupied {
        let got = self.occupy(extent, need, Column::Moving);
        self.unit(extent.head).set_stamp(born_ms);
        got
    }

    /// Ends a block: all its pages go to a column, and the caller disposes of the extent.
    pub fn vacate(&mut self, extent: Extent, to: Column) -> Pages {
        let need = self.need_of(extent);
        self.forget_slack(extent, need, to);
        self.ledger.uncount_block();
        self.ledger.transfer(Column::Live, to, need.pages);
        self.unit(extent.head).set_pages(Pages::NONE);
        self.label(extent, Kind::Busy);
        self.populated(extent)
    }

    /// The request that a live block serves.
    pub fn need_of(&self, extent: Extent) -> Need {
        let pages = self.unit(extent.head).pages();
        let tail = pages - self.geometry.pages_per_unit() * u64::from(extent.len - 1);
        Need {
            units: extent.len,
            pages,
            tail,
        }
    }

    pub fn slack_of(&self, extent: Extent, need: Need) -> Pages {
        let last = self.unit(extent.end() - 1);
        last.populated().saturating_sub(need.tail)
    }

    /// Puts a block with slack at the end of the queue.
    fn note_slack(&mut self, extent: Extent, need: Need, from: Column) {
        let slack = self.slack_of(extent, need);
        if slack == Pages::NONE {
            return;
        }
        self.ledger.transfer(from, Column::Slack, slack);
        self.unit(extent.end() - 1).set_stamp(self.now_ms);
        self.with_slack.push_last(self.pagemap, extent.head);
    }

    /// Undoes `note_slack`, before the block or its pages change.
    pub fn forget_slack(&mut self, extent: Extent, need: Need, to: Column) {
        let slack = self.slack_of(extent, need);
        if slack == Pages::NONE {
            return;
        }
        self.ledger.transfer(Column::Slack, to, slack);
        self.with_slack.remove(self.pagemap, extent.head);
    }

    /// Takes pages beyond the need, up to this many in the last unit, for slack again.
    pub fn offer_slack(&mut self, extent: Extent, populated: Pages, from: Column) {
        self.unit(extent.end() - 1).set_populated(populated);
        self.note_slack(extent, self.need_of(extent), from);
    }

    /// Marks a block whose slack left the queue to be returned.
    pub fn pin(&mut self, head: UnitId) {
        self.unit(head).raise(Flags::PINNED);
        self.pinned.push_last(self.pagemap, head);
    }

    pub fn unpin(&mut self, head: UnitId) {
        self.unit(head).lower(Flags::PINNED);
        self.pinned.remove(self.pagemap, head);
    }
}
