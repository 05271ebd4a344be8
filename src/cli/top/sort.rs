//! The sort order of `top`.

use std::cmp::Ordering;

use clap::ValueEnum;

use super::row::Row;

/// The columns, in the order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SortKey {
    Pid,
    User,
    Name,
    Site,
    Proc,
    Round,
    Stage,
    /// Resident memory.
    #[value(alias = "memory", alias = "mem")]
    Rss,
    /// By growth per minute.
    Growth,
    Live,
    Cached,
    Retained,
    Limit,
    Command,
    Allocator,
    Role,
    /// By growth since the first size in HISTORY.
    History,
}

impl SortKey {
    /// The index of the column in the table.
    pub fn column(self) -> usize {
        self as usize
    }

    /// The next of these columns to the right, or with a negative step to the left. It wraps around
    /// at the ends.
    pub fn neighbour(self, step: isize, shown: &[usize]) -> Self {
        let Some(last) = shown.len().checked_sub(1) else {
            return self;
        };
        let left = shown.partition_point(|column| *column < self.column());
        let is_shown = shown.get(left) == Some(&self.column());
        let next = match (step > 0, is_shown) {
            (true, true) => left + 1,
            (true, false) => left,
            (false, _) => left.checked_sub(1).unwrap_or(last),
        };
        let next = if next > last { 0 } else { next };
        Self::value_variants()[shown[next]]
    }

    fn compare(self, a: &Row, b: &Row) -> Ordering {
        match self {
            SortKey::Pid => a.pid.cmp(&b.pid),
            SortKey::User => a.user.cmp(&b.user),
            SortKey::Name => a.name.cmp(&b.name),
            SortKey::Site => a.site.cmp(&b.site),
            SortKey::Proc => a.proc.cmp(&b.proc),
            SortKey::Role => a.role.cmp(&b.role),
            SortKey::Round => a.round.cmp(&b.round),
            SortKey::Stage => a.stage.cmp(&b.stage),
            SortKey::Live => a.live_bytes.cmp(&b.live_bytes),
            SortKey::Cached => a.cached_bytes.cmp(&b.cached_bytes),
            SortKey::Rss => a.rss_bytes.cmp(&b.rss_bytes),
            SortKey::Growth => {
                let growth = |row: &Row| row.growth_per_minute.unwrap_or(f64::NEG_INFINITY);
                growth(a).total_cmp(&growth(b))
            }
            SortKey::Retained => a.retained_bytes.cmp(&b.retained_bytes),
            SortKey::History => a.growth_bytes().cmp(&b.growth_bytes()),
            SortKey::Limit => a.limit_bytes.cmp(&b.limit_bytes),
            SortKey::Allocator => a.allocator.cmp(&b.allocator),
            SortKey::Command => a.command().cmp(b.command()),
        }
    }

    /// Sizes and rounds start with the largest, names with the first.
    fn starts_descending(self) -> bool {
        use SortKey::{Cached, Growth, History, Limit, Live, Retained, Round, Rss};
        matches!(
            self,
            Round | Rss | Growth | History | Live | Cached | Retained | Limit
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
    use super::super::columns::COLUMNS;
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
        for (key, column) in SortKey::value_variants().iter().zip(COLUMNS) {
            let name = key.to_possible_value().unwrap().get_name().to_uppercase();
            let first = column.heading.split('/').next();
            assert_eq!(Some(&*name), first);
        }
        assert_eq!(SortKey::value_variants().len(), COLUMNS.len());
    }

    #[test]
    fn the_neighbour_is_a_shown_column_and_that_of_the_last_one_is_the_first() {
        let shown = [SortKey::Pid, SortKey::Rss, SortKey::Live].map(SortKey::column);
        let from = |key: SortKey, step| key.neighbour(step, &shown);
        assert_eq!(from(SortKey::Pid, 1), SortKey::Rss);
        assert_eq!(from(SortKey::Live, 1), SortKey::Pid);
        assert_eq!(from(SortKey::Pid, -1), SortKey::Live);
        assert_eq!(from(SortKey::Site, 1), SortKey::Rss);
        assert_eq!(from(SortKey::Site, -1), SortKey::Pid);
        assert_eq!(from(SortKey::Role, 1), SortKey::Pid);
        assert_eq!(SortKey::Rss.neighbour(1, &[]), SortKey::Rss);
    }
}
