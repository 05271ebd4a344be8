//! The page ledger: one column for each use of a page counts the recycler's pages. Other fields
//! hold totals from the start of the process.
//!
//! Invariant: the wrapping sum of all columns is zero, because the system's column counts the pages
//! that it lent as negative. Only `transfer` changes columns. Callers hold the lock of the state.

use crate::core::geometry::Pages;

/// A use of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Not resident: never faulted in, or returned to the system.
    System,
    /// Handed out to the program.
    Live,
    /// In the last unit of a live block, behind the block's end (the *tail* of the glossary).
    Slack,
    /// In free extents, for the next block.
    Cached,
    /// Owned by a thread that moves them or allocates with them.
    Moving,
    /// Owned by a thread that is returning them to the system.
    Purging,
}

/// The pages of an extent that became live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocation {
    /// Pages that were resident before.
    pub recycled_pages: Pages,
    /// Pages that the program will fault in.
    pub fresh_pages: Pages,
}

/// Totals from the start of the process.
#[derive(Clone, Copy, Debug)]
pub struct Totals {
    pub recycled: Pages,
    pub moved: Pages,
    pub fresh: Pages,
    pub returned: Pages,
}

impl Totals {
    /// Counts a served request. `kept` pages were in the block before realloc resized it.
    pub fn count_allocation(&mut self, allocation: Allocation, kept: Pages) {
        self.recycled += allocation.recycled_pages.saturating_sub(kept);
        self.fresh += allocation.fresh_pages;
    }
}

const COLUMNS: usize = Column::Purging as usize + 1;

#[derive(Clone, Copy, Debug)]
pub struct Ledger {
    columns: [u64; COLUMNS],
    peak_live: Pages,
    pub live_blocks: u64,
    pub totals: Totals,
}

impl Ledger {
    pub const fn new() -> Self {
        Ledger {
            columns: [0; COLUMNS],
            peak_live: Pages::NONE,
            live_blocks: 0,
            totals: Totals {
                recycled: Pages::NONE,
                moved: Pages::NONE,
                fresh: Pages::NONE,
                returned: Pages::NONE,
            },
        }
    }

    #[inline]
    pub fn transfer(&mut self, from: Column, to: Column, pages: Pages) {
        debug_assert!(
            from == Column::System || self.pages(from) >= pages,
            "{pages:?} from {from:?} to {to:?}: {self:?}"
        );
        // Only the system's column wraps below zero.
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

    /// All pages except those that are already being returned.
    pub fn kept(&self) -> Pages {
        self.live() + self.slack() + self.cached() + self.moving()
    }

    /// All pages that the system gave and has not got back.
    pub fn footprint(&self) -> Pages {
        self.kept() + self.purging()
    }

    pub fn peak_live(&self) -> Pages {
        self.peak_live
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
    fn a_transfer_of_more_pages_than_the_column_has_panics() {
        Ledger::new().transfer(Column::Cached, Column::Live, Pages::new(1));
    }
}
