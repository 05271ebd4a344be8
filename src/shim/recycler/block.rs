//! Live blocks on the books: pages handed out, and the slack behind them.

use super::space::{Run, Space};
use super::unit::{flag, kind, Need, UnitId};

/// What became of the pages of a span that was made live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupied {
    pub recycled_pages: u64,
    pub fresh_pages: u64,
}

impl Space {
    /// Makes a run of ours the block for `need`. The caller has taken the run's pages off the books.
    pub fn occupy(&mut self, run: Run, need: Need) -> Occupied {
        let full = self.geometry.pages_per_unit();
        let before = self.populated(run);
        for id in run.head..run.end() - 1 {
            self.unit(id).set_populated(full);
        }
        let last = self.unit(run.end() - 1);
        last.set_populated(last.populated().max(need.tail));
        let after = self.populated(run);
        self.label(run, kind::LIVE);
        let head = self.unit(run.head);
        head.set_pages(need.pages);
        head.lower(flag::PINNED | flag::FREED);
        self.counters.live_blocks += 1;
        self.counters.add_live(u64::from(need.pages));
        self.note_slack(run, need);
        Occupied {
            recycled_pages: before,
            fresh_pages: after - before,
        }
    }

    /// Takes a block's pages off the books; the caller disposes of the run.
    pub fn vacate(&mut self, run: Run) -> u64 {
        let need = self.need_of(run);
        self.forget_slack(run, need);
        self.counters.live_blocks -= 1;
        self.counters.live -= u64::from(need.pages);
        self.label(run, kind::BUSY);
        self.populated(run)
    }

    /// The request that a live block serves.
    pub fn need_of(&self, run: Run) -> Need {
        let pages = self.unit(run.head).pages();
        let tail = pages - (run.len - 1) * u32::from(self.geometry.pages_per_unit());
        Need {
            units: run.len,
            pages,
            tail: tail as u16,
        }
    }

    pub fn slack_of(&self, run: Run, need: Need) -> u64 {
        u64::from(
            self.unit(run.end() - 1)
                .populated()
                .saturating_sub(need.tail),
        )
    }

    /// Puts a block with slack at the end of the queue.
    fn note_slack(&mut self, run: Run, need: Need) {
        let slack = self.slack_of(run, need);
        if slack == 0 {
            return;
        }
        self.counters.slack += slack;
        self.unit(run.end() - 1).set_stamp(self.now_ms);
        self.slack_queue.push(self.table, run.head);
    }

    /// Undoes `note_slack`, before the block or its pages change.
    pub fn forget_slack(&mut self, run: Run, need: Need) {
        let slack = self.slack_of(run, need);
        if slack == 0 {
            return;
        }
        self.counters.slack -= slack;
        self.slack_queue.remove(self.table, run.head);
    }

    /// Takes pages beyond the need, up to this many in the last unit, for slack again.
    pub fn offer_slack(&mut self, run: Run, populated: u16) {
        self.unit(run.end() - 1).set_populated(populated);
        self.note_slack(run, self.need_of(run));
    }

    /// Marks a block whose slack left the queue to be returned.
    pub fn pin(&mut self, head: UnitId) {
        self.unit(head).raise(flag::PINNED);
        self.pinned.push(self.table, head);
    }

    pub fn unpin(&mut self, head: UnitId) {
        self.unit(head).lower(flag::PINNED);
        self.pinned.remove(self.table, head);
    }
}
