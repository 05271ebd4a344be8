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
    pub fn occupy(&mut self, run: Extent, need: Need, from: Column) -> Occupied {
        let full = self.geometry.pages_per_unit();
        let before = self.populated(run);
        for id in run.head..run.end() - 1 {
            self.unit(id).set_populated(full);
        }
        let last = self.unit(run.end() - 1);
        last.set_populated(last.populated().max(need.tail));
        let after = self.populated(run);
        self.label(run, Kind::Live);
        let head = self.unit(run.head);
        head.set_pages(need.pages);
        head.set_stamp(self.now_ms);
        head.lower(Flags::PINNED.with(Flags::FREED));
        let fresh_pages = after - before;
        self.ledger.count_block();
        self.ledger.transfer(Column::System, from, fresh_pages);
        self.ledger.transfer(from, Column::Live, need.pages);
        self.note_slack(run, need, from);
        Occupied {
            recycled_pages: before,
            fresh_pages,
        }
    }

    /// The same for a block that changed its size: it is as old as it was.
    pub fn occupy_again(&mut self, run: Extent, need: Need, born_ms: u32) -> Occupied {
        let got = self.occupy(run, need, Column::Moving);
        self.unit(run.head).set_stamp(born_ms);
        got
    }

    /// Ends a block: all its pages go to a column, and the caller disposes of the extent.
    pub fn vacate(&mut self, run: Extent, to: Column) -> Pages {
        let need = self.need_of(run);
        self.forget_slack(run, need, to);
        self.ledger.uncount_block();
        self.ledger.transfer(Column::Live, to, need.pages);
        self.unit(run.head).set_pages(Pages::NONE);
        self.label(run, Kind::Busy);
        self.populated(run)
    }

    /// The request that a live block serves.
    pub fn need_of(&self, run: Extent) -> Need {
        let pages = self.unit(run.head).pages();
        let tail = pages - self.geometry.pages_per_unit() * u64::from(run.len - 1);
        Need {
            units: run.len,
            pages,
            tail,
        }
    }

    pub fn slack_of(&self, run: Extent, need: Need) -> Pages {
        let last = self.unit(run.end() - 1);
        last.populated().saturating_sub(need.tail)
    }

    /// Puts a block with slack at the end of the queue.
    fn note_slack(&mut self, run: Extent, need: Need, from: Column) {
        let slack = self.slack_of(run, need);
        if slack == Pages::NONE {
            return;
        }
        self.ledger.transfer(from, Column::Slack, slack);
        self.unit(run.end() - 1).set_stamp(self.now_ms);
        self.with_slack.push_last(self.pagemap, run.head);
    }

    /// Undoes `note_slack`, before the block or its pages change.
    pub fn forget_slack(&mut self, run: Extent, need: Need, to: Column) {
        let slack = self.slack_of(run, need);
        if slack == Pages::NONE {
            return;
        }
        self.ledger.transfer(Column::Slack, to, slack);
        self.with_slack.remove(self.pagemap, run.head);
    }

    /// Takes pages beyond the need, up to this many in the last unit, for slack again.
    pub fn offer_slack(&mut self, run: Extent, populated: Pages, from: Column) {
        self.unit(run.end() - 1).set_populated(populated);
        self.note_slack(run, self.need_of(run), from);
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
