//! The columns of `top`, and the table as text. Columns without values are left out. A narrow terminal
//! drops the least important columns, and never cuts a number.

use std::cmp::Ordering;

use super::row::Row;
use crate::units::{bytes, signed_size};

pub const NOTHING_RUNS: &str = "No process runs with flarena here.";
pub const HOW_TO_START: &str =
    "Start one with flarena run, such as: flarena run -- python3 train.py";

/// Longer names are cut, and end with `…`.
const LONGEST_TEXT: usize = 20;
/// The length of the kernel's longest name (15), and one for the `…` of a cut name.
const LONGEST_COMMAND: usize = 16;

#[derive(PartialEq, PartialOrd)]
pub enum Value<'a> {
    Pid(i32),
    Text(Option<&'a str>),
    Command(&'a str),
    Round(Option<i64>),
    Bytes(Option<u64>),
    BytesPerMinute(Option<f64>),
}

impl Value<'_> {
    fn text(&self) -> Option<String> {
        match self {
            Value::Pid(pid) => Some(pid.to_string()),
            Value::Text(text) => text.map(shortened),
            Value::Command(name) => Some(shortened_command(name)),
            Value::Round(round) => round.map(|round| round.to_string()),
            Value::Bytes(size) => size.map(bytes),
            Value::BytesPerMinute(rate) => rate.map(signed_size),
        }
    }
}

pub struct Column {
    /// The value of `--sort`.
    pub name: &'static str,
    pub heading: &'static str,
    /// The most important column has 0; the others leave first.
    rank: usize,
    /// Columns of numbers are aligned to the right.
    pub is_number: bool,
    /// Sizes and rounds start with the largest, names with the first.
    pub starts_descending: bool,
    value: fn(&Row) -> Value<'_>,
}

/// A column of texts, or of numbers with `.of_numbers()`.
const fn column(
    name: &'static str,
    heading: &'static str,
    rank: usize,
    value: fn(&Row) -> Value<'_>,
) -> Column {
    Column {
        name,
        heading,
        rank,
        is_number: false,
        starts_descending: false,
        value,
    }
}

impl Column {
    const fn of_numbers(self) -> Column {
        Column {
            is_number: true,
            starts_descending: true,
            ..self
        }
    }
}

pub const COUNT: usize = 11;
const PID: usize = 0;
pub const RSS: usize = 5;

/// In the order of the screen.
pub const COLUMNS: [Column; COUNT] = [
    Column {
        starts_descending: false,
        ..column("pid", "PID", 0, |row| Value::Pid(row.pid)).of_numbers()
    },
    column("site", "SITE", 3, |row| Value::Text(row.site.as_deref())),
    column("proc", "PROC", 4, |row| Value::Text(row.proc.as_deref())),
    column("round", "ROUND", 5, |row| Value::Round(row.round)).of_numbers(),
    column("stage", "STAGE", 7, |row| Value::Text(row.stage.as_deref())),
    column("rss", "RSS", 1, |row| Value::Bytes(row.rss_bytes)).of_numbers(),
    column("growth", "GROWTH/MIN", 6, |row| {
        Value::BytesPerMinute(row.growth_per_minute)
    })
    .of_numbers(),
    column("live", "LIVE", 8, |row| Value::Bytes(row.live_bytes)).of_numbers(),
    column("cached", "CACHED", 9, |row| Value::Bytes(row.cached_bytes)).of_numbers(),
    column("limit", "LIMIT", 10, |row| Value::Bytes(row.limit_bytes)).of_numbers(),
    column("command", "COMMAND", 2, |row| Value::Command(row.command())),
];

pub type Cells = [Option<String>; COUNT];

pub fn cells(row: &Row) -> Cells {
    COLUMNS.each_ref().map(|column| (column.value)(row).text())
}

/// The text of a cell, `-` without a value.
pub fn shown(cells: &Cells, column: usize) -> String {
    cells[column].clone().unwrap_or_else(|| "-".to_owned())
}

/// A column and a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    pub column: usize,
    pub descending: bool,
}

impl Order {
    pub fn by(column: usize) -> Self {
        let descending = COLUMNS[column].starts_descending;
        Self { column, descending }
    }

    /// Equal rows are sorted by pid, so that their order is stable.
    pub fn compare(self, a: &Row, b: &Row) -> Ordering {
        let value = COLUMNS[self.column].value;
        let order = value(a).partial_cmp(&value(b)).unwrap_or(Ordering::Equal);
        let order = if self.descending {
            order.reverse()
        } else {
            order
        };
        order.then(a.pid.cmp(&b.pid))
    }

    /// The heading, with an arrow on the sorted column.
    pub fn heading(self, column: usize) -> String {
        let arrow = match (self.column == column, self.descending) {
            (false, _) => "",
            (true, true) => "▼",
            (true, false) => "▲",
        };
        COLUMNS[column].heading.to_owned() + arrow
    }
}

/// A text, cut so that it leaves room for the numbers.
fn shortened(text: &str) -> String {
    if text.chars().count() <= LONGEST_TEXT {
        return text.to_owned();
    }
    let start: String = text.chars().take(LONGEST_TEXT - 1).collect();
    start + "…"
}

/// The end of a program's name, which is more specific than its start: as many of a module's last
/// names as fit.
fn shortened_command(name: &str) -> String {
    let count = name.chars().count();
    if count <= LONGEST_COMMAND {
        return name.to_owned();
    }
    let room = |rest: &&str| rest.chars().count() < LONGEST_COMMAND;
    let mut after_dots = name.match_indices('.').map(|(dot, _)| &name[dot + 1..]);
    let rest = after_dots.find(room).filter(|rest| *rest != "py");
    let end = || name.chars().skip(count + 1 - LONGEST_COMMAND).collect();
    "…".to_owned() + &rest.map_or_else(end, str::to_owned)
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
    let layout = layout(&rows, room, order);
    let line = |cell: &dyn Fn(usize) -> String| {
        let parts = layout.iter().map(|&(column, width)| {
            let cell = cell(column);
            match COLUMNS[column].is_number {
                true => format!("{cell:>width$}"),
                false => format!("{cell:<width$}"),
            }
        });
        let parts: Vec<String> = parts.collect();
        parts.join(" ").trim_end().to_owned() + "\n"
    };
    let mut text = line(&|column| order.heading(column));
    for row in &rows {
        text += &line(&|column| shown(row, column));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(pid: i32, rss_bytes: u64) -> Row {
        Row {
            pid,
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
            rows.each_ref().map(|row| row.pid)
        };
        assert_eq!(sorted(order), [2, 1, 3, 4]);
        order.descending = false;
        assert_eq!(sorted(order), [4, 1, 3, 2]);
    }

    #[test]
    fn each_column_sorts_by_the_name_of_its_heading() {
        for column in &COLUMNS {
            let first = column.heading.split('/').next();
            assert_eq!(Some(&*column.name.to_uppercase()), first);
        }
        assert_eq!((COLUMNS[PID].name, COLUMNS[RSS].name), ("pid", "rss"));
    }

    #[test]
    fn a_cut_name_ends_with_an_ellipsis() {
        assert_eq!(shortened("site-1"), "site-1");
        let cut = shortened(&"é".repeat(99));
        assert_eq!(
            (cut.chars().count(), cut.ends_with('…')),
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
            assert_eq!(shortened_command(name), cut);
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
