//! The columns of `top`, and the table as text. Columns without values are left out. A narrow terminal
//! drops the least important columns, and never cuts a number.

use std::cmp::Ordering;

use super::row::Row;
use crate::output;
use crate::units::{bytes, or_dash, signed_size};

pub const NOTHING_RUNS: &str = "No process runs with flarena here.\n\
    Start one with flarena run, such as: flarena run -- python3 train.py";

/// The longest name of a site or stage.
const LONGEST_TEXT: usize = 20;
/// The length of the kernel's longest name (15), and one for the `…` of a cut name.
const LONGEST_COMMAND: usize = 16;

/// The value of a row in a column.
#[derive(PartialEq, PartialOrd)]
enum Value<'a> {
    /// A name, and its longest length on the screen.
    Name(Option<&'a str>, usize),
    Count(Option<i64>),
    Bytes(Option<u64>),
    Growth(Option<f64>),
}
use Value::{Bytes, Count, Growth, Name};

impl Value<'_> {
    fn text(self) -> Option<String> {
        match self {
            Name(name, longest) => name.map(|name| shortened(name, longest)),
            Count(count) => count.map(|count| count.to_string()),
            Bytes(size) => size.map(bytes),
            Growth(change) => change.map(signed_size),
        }
    }
}

fn name(name: &Option<String>) -> Value<'_> {
    Name(name.as_deref(), LONGEST_TEXT)
}

pub struct Column {
    /// The value of `--sort`. In capitals, it begins the heading.
    pub name: &'static str,
    /// The most important column has 0; the others leave first.
    rank: usize,
    value: fn(&Row) -> Value<'_>,
}

impl Column {
    const fn new(name: &'static str, rank: usize, value: fn(&Row) -> Value<'_>) -> Self {
        Self { name, rank, value }
    }

    /// Numbers are aligned to the right.
    pub fn is_number(&self) -> bool {
        !matches!((self.value)(&Row::default()), Name(..))
    }
}

pub const COUNT: usize = 11;
const PID: usize = 0;
pub const RSS: usize = 5;
const GROWTH: usize = 6;

/// In the order of the screen.
pub const COLUMNS: [Column; COUNT] = [
    Column::new("pid", 0, |row| Count(Some(row.process.pid.into()))),
    Column::new("site", 3, |row| name(&row.site)),
    Column::new("proc", 4, |row| name(&row.proc)),
    Column::new("round", 5, |row| Count(row.round)),
    Column::new("stage", 7, |row| name(&row.stage)),
    Column::new("rss", 1, |row| Bytes(row.rss_bytes)),
    Column::new("growth", 6, |row| Growth(row.growth_per_minute)),
    Column::new("live", 8, |row| Bytes(row.live_bytes)),
    Column::new("cached", 9, |row| Bytes(row.cached_bytes)),
    Column::new("limit", 10, |row| Bytes(row.limit_bytes)),
    Column::new("command", 2, |row| {
        Name(Some(row.command()), LONGEST_COMMAND)
    }),
];

pub type Cells = [Option<String>; COUNT];

pub fn cells(row: &Row) -> Cells {
    COLUMNS.each_ref().map(|column| (column.value)(row).text())
}

/// A column and a direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Order {
    pub column: usize,
    pub descending: bool,
}

impl Order {
    /// Sizes and rounds start with the largest, pids and names with the first.
    pub fn by(column: usize) -> Self {
        let descending = COLUMNS[column].is_number() && column != PID;
        Self { column, descending }
    }

    /// Equal rows are sorted by pid, so that their order is stable.
    pub fn compare(self, a: &Row, b: &Row) -> Ordering {
        let (first, second) = if self.descending { (b, a) } else { (a, b) };
        let value = COLUMNS[self.column].value;
        let order = value(first).partial_cmp(&value(second));
        order
            .unwrap_or(Ordering::Equal)
            .then(a.process.pid.cmp(&b.process.pid))
    }

    /// The heading, with an arrow on the sorted column.
    pub fn heading(self, column: usize) -> String {
        let arrow = match (self.column == column, self.descending) {
            (false, _) => "",
            (true, true) => "▼",
            (true, false) => "▲",
        };
        let unit = if column == GROWTH { "/MIN" } else { "" };
        COLUMNS[column].name.to_uppercase() + unit + arrow
    }
}

/// The end of a long name, which is more specific than its start.
fn shortened(name: &str, longest: usize) -> String {
    let count = name.chars().count();
    if count <= longest {
        return name.to_owned();
    }
    let end: String = name.chars().skip(count + 1 - longest).collect();
    "…".to_owned() + end.trim_start_matches('.')
}

/// The columns with values that fit, with their widths, in the order of the screen. The most important
/// ones are chosen first. `None`: the room is not limited.
pub fn layout(rows: &[Cells], room: Option<usize>, order: Order) -> Vec<(usize, usize)> {
    let has_values =
        |column: &usize| rows.is_empty() || rows.iter().any(|row| row[*column].is_some());
    let mut columns: Vec<usize> = (0..COUNT).filter(has_values).collect();
    columns.sort_by_key(|column| COLUMNS[*column].rank);
    let mut left = room.map_or(usize::MAX, |room| room + 1);
    let mut shown = Vec::new();
    for column in columns {
        let cells = rows.iter().filter_map(|row| row[column].as_ref());
        let widths = cells.map(|cell| cell.chars().count());
        let width = widths.fold(order.heading(column).chars().count(), usize::max);
        if width < left || column == PID {
            left = left.saturating_sub(width + 1);
            shown.push((column, width));
        } else if column == RSS {
            break; // A less important column in its place would be taken for it.
        }
    }
    shown.sort_unstable();
    shown
}

/// The table as text, for a pipe or for a terminal of `room` columns.
pub fn table(rows: &[&Row], room: Option<usize>, order: Order) -> String {
    let rows: Vec<Cells> = rows.iter().map(|row| cells(row)).collect();
    let columns = layout(&rows, room, order).into_iter();
    let columns: Vec<usize> = columns.map(|(column, _)| column).collect();
    let cell = |row: &Cells, column: &usize| or_dash(row[*column].as_ref());
    let line = |row| columns.iter().map(move |column| cell(row, column));
    let mut table = output::unlimited_table();
    table.set_header(columns.iter().map(|&column| order.heading(column)));
    table.add_rows(rows.iter().map(line));
    let is_number = |place: &usize| COLUMNS[columns[*place]].is_number();
    output::tight(table, (0..columns.len()).filter(is_number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::Process;

    fn row(pid: i32, rss_bytes: u64) -> Row {
        Row {
            process: Process {
                pid,
                start_ticks: 0,
            },
            rss_bytes: Some(rss_bytes),
            ..Row::default()
        }
    }

    fn text(rows: &[&Row], room: Option<usize>) -> String {
        table(rows, room, Order::by(RSS))
    }

    fn full_row() -> Row {
        Row {
            site: Some("site-1".into()),
            proc: Some("TR".into()),
            round: Some(100),
            stage: Some("before_aggregation".into()),
            comm: "train.py".into(),
            growth_per_minute: Some(-1023.9 * 1024.0 * 1024.0),
            ..row(1_234_567, 1_073_637_000)
        }
    }

    #[test]
    fn the_largest_is_first_and_equal_rows_are_sorted_by_pid() {
        let mut rows = [row(3, 5), row(1, 5), row(2, 9), row(4, 0)];
        rows[3].rss_bytes = None;
        let mut order = Order::by(RSS);
        let mut sorted = |order: Order| {
            rows.sort_by(|a, b| order.compare(a, b));
            rows.each_ref().map(|row| row.process.pid)
        };
        assert_eq!(sorted(order), [2, 1, 3, 4]);
        order.descending = false;
        assert_eq!(sorted(order), [4, 1, 3, 2]);
    }

    #[test]
    fn each_column_sorts_by_the_name_of_its_heading() {
        let headings = [PID, RSS, GROWTH].map(|column| Order::by(RSS).heading(column));
        assert_eq!(headings, ["PID", "RSS▼", "GROWTH/MIN"]);
        assert_eq!(
            [PID, RSS, GROWTH].map(|column| COLUMNS[column].name),
            ["pid", "rss", "growth"]
        );
    }

    #[test]
    fn a_cut_name_begins_with_an_ellipsis() {
        assert_eq!(shortened("site-1", LONGEST_TEXT), "site-1");
        let cut = shortened(&"é".repeat(99), LONGEST_TEXT);
        assert_eq!(
            (cut.chars().count(), cut.starts_with('…')),
            (LONGEST_TEXT, true)
        );
    }

    #[test]
    fn a_long_command_keeps_its_end() {
        for (name, cut) in [
            ("train.py", "train.py"),
            ("pt_main_thread", "pt_main_thread"),
            (
                "nvflare.private.fed.app.server.runner_process",
                "…runner_process",
            ),
            ("torch.distributed.run", "…distributed.run"),
            ("train_the_large_model.py", "…_large_model.py"),
        ] {
            assert_eq!(shortened(name, LONGEST_COMMAND), cut);
        }
    }

    #[test]
    fn a_narrow_terminal_drops_columns_but_no_digits() {
        let (small, large, full) = (row(27478, 112_407_347), row(1_234_567, 5 << 40), full_row());
        let rows = [&small, &large, &full];
        for room in 7..250 {
            let text = text(&rows, Some(room));
            let fits = |line: &str| line.chars().count() <= room;
            assert!(text.lines().all(fits), "{text}");
            let first = text.lines().nth(1).unwrap();
            assert!(first.starts_with("  27478"), "{text}");
            assert_eq!(text.contains("RSS▼"), text.contains("107.2 MB"), "{text}");
        }
    }

    #[test]
    fn a_column_without_values_is_left_out() {
        let filled = Row {
            comm: "train.py".into(),
            site: Some("site-1".into()),
            ..row(1, 1024)
        };
        let text = text(&[&row(2, 2048), &filled], None);
        let headings: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
        assert_eq!(headings, ["PID", "SITE", "RSS▼", "COMMAND"]);
        assert!(table(&[], None, Order::by(RSS)).contains("STAGE"));
    }

    #[test]
    fn eighty_columns_show_the_size_the_growth_and_the_command() {
        let text = text(&[&full_row()], Some(80));
        for part in ["1023.9 MB", "-1023.9 MB", "train.py", "site-1"] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}
