//! The table of `top`. Columns without values are left out. A narrow terminal drops the least
//! important columns, and never cuts a number. HISTORY takes the room that is left.

use super::columns::{sparkline, Cells, COLUMNS, COUNT, HISTORY, PID, RSS};
use super::row::Row;
use super::sort::Order;

pub const NOTHING_RUNS: &str = "No process runs with flarena here.";
pub const HOW_TO_START: &str =
    "Start one with flarena run, such as: flarena run -- python3 train.py";

/// HISTORY gets more room than this if there is some.
const SHORTEST_HISTORY: usize = 8;

/// The width of HISTORY where the room is not limited.
const USUAL_HISTORY: usize = 24;

const GAP: usize = 1;

/// The shown columns with their widths, in the order of the screen.
pub type Layout = Vec<(usize, usize)>;

/// The width of a column that shows its cells and its heading whole, the arrow included.
fn width(rows: &[Cells], column: usize, order: Order) -> usize {
    if column == HISTORY {
        return SHORTEST_HISTORY;
    }
    let widest = rows.iter().map(|row| row[column].chars().count()).max();
    widest
        .unwrap_or(0)
        .max(heading(column, order).chars().count())
}

/// The columns with values that fit, the most important first. `None`: the room is not limited.
pub fn layout(rows: &[Cells], room: Option<usize>, order: Order) -> Layout {
    let has_values = |column: &usize| {
        let has_value = |row: &Cells| !["", "-"].contains(&row[*column].as_str());
        *column == PID || rows.is_empty() || rows.iter().any(has_value)
    };
    let mut columns: Vec<usize> = (0..COUNT).filter(has_values).collect();
    columns.sort_by_key(|column| COLUMNS[*column].rank);
    let mut left = room.map_or(usize::MAX, |room| room.saturating_add(GAP));
    let fits = |column: usize| {
        let width = width(rows, column, order);
        if width + GAP > left && column != PID {
            // Nothing is shown instead of RSS.
            left = if column == RSS { 0 } else { left };
            return None;
        }
        left = left.saturating_sub(width + GAP);
        Some((column, width))
    };
    let mut shown: Layout = columns.into_iter().filter_map(fits).collect();
    shown.sort_unstable();
    if let Some((HISTORY, width)) = shown.last_mut() {
        *width = match room {
            Some(_) => *width + left,
            None => USUAL_HISTORY,
        };
    }
    shown
}

/// The heading, with an arrow on the sorted column.
pub fn heading(column: usize, order: Order) -> String {
    let arrow = match (order.key.column() == column, order.descending) {
        (false, _) => "",
        (true, true) => "▼",
        (true, false) => "▲",
    };
    COLUMNS[column].heading.to_owned() + arrow
}

/// The text of a column in this row.
pub fn cell(row: &Row, cells: &Cells, column: usize, width: usize) -> String {
    match column {
        HISTORY => sparkline(&row.history, width),
        _ => cells[column].clone(),
    }
}

/// The table as text, for a pipe or for a terminal of `room` columns.
pub fn table(rows: &[&Row], room: Option<usize>, order: Order) -> String {
    let cells: Vec<Cells> = rows.iter().map(|row| row.cells()).collect();
    let layout = layout(&cells, room, order);
    let line = |of: &dyn Fn(usize, usize) -> String| {
        let parts = layout.iter().map(|&(column, width)| {
            let cell = of(column, width);
            match COLUMNS[column].is_number {
                true => format!("{cell:>width$}"),
                false => format!("{cell:<width$}"),
            }
        });
        let parts: Vec<String> = parts.collect();
        parts.join(" ").trim_end().to_owned() + "\n"
    };
    let mut text = line(&|column, _| heading(column, order));
    for (row, cells) in rows.iter().zip(&cells) {
        text += &line(&|column, width| cell(row, cells, column, width));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::sort::SortKey;
    use super::*;

    fn row(pid: i32, rss_bytes: u64) -> Row {
        Row {
            pid,
            rss_bytes: Some(rss_bytes),
            ..Row::default()
        }
    }

    fn text(rows: &[&Row], room: Option<usize>) -> String {
        table(rows, room, Order::by(SortKey::Rss))
    }

    fn full_row() -> Row {
        Row {
            user: "alice".into(),
            name: Some("trainer-3".into()),
            site: Some("site-1".into()),
            proc: Some("TR".into()),
            round: Some(100),
            stage: Some("before_aggregation".into()),
            comm: "train.py".into(),
            growth_per_minute: Some(-1023.9 * 1024.0 * 1024.0),
            history: (0..300).collect(),
            ..row(1_234_567, 1_073_637_000)
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
            role: Some("client".into()),
            ..row(1, 1024)
        };
        let text = text(&[&row(2, 2048), &filled], None);
        let headings: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
        assert_eq!(headings, ["PID", "RSS▼", "COMMAND", "ROLE"]);
        assert!(table(&[], None, Order::by(SortKey::Rss)).contains("SITE"));
    }

    #[test]
    fn history_takes_the_room_that_is_left() {
        let full = full_row();
        for room in [120, 160, 300] {
            let text = text(&[&full], Some(room));
            let last = text.lines().nth(1).unwrap();
            let bars = last.chars().filter(|c| ('▁'..='█').contains(c)).count();
            assert_eq!(last.chars().count(), room, "{text}");
            assert!(room < 160 || bars > 20, "{text}");
        }
    }

    #[test]
    fn eighty_columns_show_the_size_the_growth_and_the_command() {
        let text = text(&[&full_row()], Some(80));
        for part in ["1023.9 MB", "-1023.9 MB", "train.py", "site-1"] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}
