//! The ledger: where each page of the recycler is.
//!
//! Pages come from the system and go back to it; in between they are in one column, and change it by
//! `transfer` alone. What one column loses another gains, so the sum over all columns, the system's
//! included, is zero for ever.

use crate::core::amount::Pages;

/// Where pages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Not ours: never faulted in, or given back.
    System,
    /// Handed out.
    Live,
    /// In the last units of live blocks, beyond what these need.
    Slack,
    /// In free extents, waiting for a block.
    Cached,
    /// In the hands of a thread that moves them.
    Moving,
    /// On their way back to the system, in a thread's hands.
    Purging,
}

const COLUMNS: usize = Column::Purging as usize + 1;

#[derive(Clone, Copy, Debug)]
pub struct Ledger {
    columns: [u64; COLUMNS],
    peak_live: Pages,
    live_blocks: u64,
}

impl Ledger {
    pub const fn new() -> Self {
        Ledger {
            columns: [0; COLUMNS],
            peak_live: Pages::NONE,
            live_blocks: 0,
        }
    }

    /// The only way for a page to change its column.
    #[inline]
    pub fn transfer(&mut self, from: Column, to: Column, pages: Pages) {
        debug_assert!(
            from == Column::System || self.pages(from) >= pages,
            "{pages:?} from {from:?} to {to:?}: {self:?}"
        );
        // Wraps for the system alone, whose column is what it is owed.
        let left = self.columns[from as usize].wrapping_sub(pages.count());
        self.columns[from as usize] = left;
        let sum = self.columns[to as usize].wrapping_add(pages.count());
        self.columns[to as usize] = sum;
        if to == Column::Live {
            self.peak_live = self.peak_live.max(self.live());
        }
    }

    fn pages(&self, column: Column) -> Pages {
        Pages::new(self.columns[column as usize])
    }

    pub fn live(&self) -> Pages {
        self.pages(Column::Live)
    }

    pub fn slack(&self) -> Pages {
        self.pages(Column::Slack)
    }

    pub fn cached(&self) -> Pages {
        self.pages(Column::Cached)
    }

    pub fn moving(&self) -> Pages {
        self.pages(Column::Moving)
    }

    pub fn purging(&self) -> Pages {
        self.pages(Column::Purging)
    }

    /// What stays when those that are on their way back have gone.
    pub fn kept(&self) -> Pages {
        self.live() + self.slack() + self.cached() + self.moving()
    }

    /// Everything that the system gave and did not get back.
    pub fn footprint(&self) -> Pages {
        self.kept() + self.purging()
    }

    pub fn peak_live(&self) -> Pages {
        self.peak_live
    }

    pub fn block_count(&self) -> u64 {
        self.live_blocks
    }

    pub fn count_block(&mut self) {
        self.live_blocks += 1;
    }

    pub fn uncount_block(&mut self) {
        self.live_blocks -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_transfer_changes_the_sum_of_all_columns() {
        use Column::*;
        let mut ledger = Ledger::new();
        for (from, to, pages) in [
            (System, Live, 7),
            (Live, Cached, 5),
            (Cached, Moving, 3),
            (Moving, Slack, 2),
            (Cached, Purging, 1),
            (Purging, System, 1),
            (Live, Live, 1),
        ] {
            ledger.transfer(from, to, Pages::new(pages));
            let sum = ledger
                .columns
                .iter()
                .fold(0, |sum: u64, column| sum.wrapping_add(*column));
            assert_eq!(sum, 0, "{ledger:?}");
        }
        assert_eq!(ledger.footprint(), Pages::new(6));
        assert_eq!(ledger.peak_live(), Pages::new(7));
    }

    #[test]
    #[should_panic(expected = "from Cached to Live")]
    #[cfg(debug_assertions)]
    fn a_column_gives_no_page_that_it_does_not_have() {
        Ledger::new().transfer(Column::Cached, Column::Live, Pages::new(1));
    }
}
