//! The sort order of `top`.

use std::cmp::Ordering;

use clap::ValueEnum;

use super::row::Row;

/// The columns, in the order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SortKey {
    Pid,
    Site,
    Proc,
    Round,
    Stage,
    Rss,
    Command,
    /// By growth since the first size in HISTORY.
    History,
    Live,
    Cached,
    Retained,
    Limit,
    Allocator,
    Role,
}

impl SortKey {
    /// The index of the column in the table.
    pub fn column(self) -> usize {
        self as usize
    }

    /// The column `step` places to the right, wrapping around at the ends.
    pub fn neighbour(self, step: isize) -> Self {
        let all = Self::value_variants();
        let index = (self.column() as isize + step).rem_euclid(all.len() as isize);
        all[index as usize]
    }

    fn compare(self, a: &Row, b: &Row) -> Ordering {
        match self {
            SortKey::Pid => a.pid.cmp(&b.pid),
            SortKey::Site => a.site.cmp(&b.site),
            SortKey::Proc => a.proc.cmp(&b.proc),
            SortKey::Role => a.role.cmp(&b.role),
            SortKey::Round => a.round.cmp(&b.round),
            SortKey::Stage => a.stage.cmp(&b.stage),
            SortKey::Live => a.live_bytes.cmp(&b.live_bytes),
            SortKey::Cached => a.cached_bytes.cmp(&b.cached_bytes),
            SortKey::Rss => a.rss_bytes.cmp(&b.rss_bytes),
            SortKey::Retained => a.retained_bytes.cmp(&b.retained_bytes),
            SortKey::History => a.growth_bytes().cmp(&b.growth_bytes()),
            SortKey::Limit => a.limit_bytes.cmp(&b.limit_bytes),
            SortKey::Allocator => a.allocator.cmp(&b.allocator),
            SortKey::Command => a.command().cmp(b.command()),
        }
    }

    /// Sizes and rounds start with the largest, names with the first.
    fn starts_descending(self) -> bool {
        use SortKey::{Cached, History, Limit, Live, Retained, Round, Rss};
        matches!(
            self,
            Round | Rss | History | Live | Cached | Retained | Limit
        )
    }
}

/// A column and a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    pub key: SortKey,
    pub descending: bool,
}

impl Order {
    pub fn by(key: SortKey) -> Self {
        Self {
            key,
            descending: key.starts_descending(),
        }
    }

    /// Equal rows are sorted by pid, so that their order is stable.
    pub fn compare(self, a: &Row, b: &Row) -> Ordering {
        let order = self.key.compare(a, b);
        let order = if self.descending {
            order.reverse()
        } else {
            order
        };
        order.then(a.pid.cmp(&b.pid))
    }
}

#[cfg(test)]
mod tests {
    use super::super::columns::HEADINGS;
    use super::*;

    fn pids(rows: &[Row]) -> Vec<i32> {
        rows.iter().map(|row| row.pid).collect()
    }

    #[test]
    fn the_largest_is_first_and_equal_rows_are_sorted_by_pid() {
        let row = |pid, rss_bytes| Row {
            pid,
            rss_bytes,
            ..Row::default()
        };
        let mut rows = [
            row(3, Some(5)),
            row(1, Some(5)),
            row(2, Some(9)),
            row(4, None),
        ];
        let order = Order::by(SortKey::Rss);
        rows.sort_by(|a, b| order.compare(a, b));
        assert_eq!(pids(&rows), [2, 1, 3, 4]);
        let order = Order {
            descending: false,
            ..order
        };
        rows.sort_by(|a, b| order.compare(a, b));
        assert_eq!(pids(&rows), [4, 1, 3, 2]);
    }

    #[test]
    fn the_sort_keys_are_in_the_order_of_the_headings() {
        for (key, heading) in SortKey::value_variants().iter().zip(HEADINGS) {
            let name = key.to_possible_value().unwrap().get_name().to_uppercase();
            assert_eq!(name, heading);
        }
        assert_eq!(SortKey::value_variants().len(), HEADINGS.len());
    }

    #[test]
    fn the_neighbour_of_the_last_column_is_the_first() {
        assert_eq!(SortKey::Pid.neighbour(-1), SortKey::Role);
        assert_eq!(SortKey::Role.neighbour(1), SortKey::Pid);
    }
}
