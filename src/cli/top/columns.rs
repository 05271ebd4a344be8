//! The columns of `top`. Columns without values are left out. A narrow terminal drops the least
//! important columns, and never cuts a number. HISTORY takes the room that is left.

use super::row::Row;
use super::sort::Order;

pub struct Column {
    pub heading: &'static str,
    /// A column of numbers is aligned to the right.
    pub is_number: bool,
    /// The most important column has 0; the others leave first.
    rank: usize,
}

const fn text(heading: &'static str, rank: usize) -> Column {
    Column {
        heading,
        is_number: false,
        rank,
    }
}

const fn number(heading: &'static str, rank: usize) -> Column {
    Column {
        heading,
        is_number: true,
        rank,
    }
}

pub const COUNT: usize = 17;

/// In the order of the screen, which is that of [`super::sort::SortKey`].
pub const COLUMNS: [Column; COUNT] = [
    number("PID", 0),
    text("USER", 10),
    text("NAME", 2),
    text("SITE", 3),
    text("PROC", 4),
    number("ROUND", 6),
    text("STAGE", 8),
    number("RSS", 1),
    number("GROWTH/MIN", 7),
    number("LIVE", 11),
    number("CACHED", 12),
    number("RETAINED", 13),
    number("LIMIT", 14),
    text("COMMAND", 5),
    text("ALLOCATOR", 15),
    text("ROLE", 16),
    text("HISTORY", 9),
];

pub const PID: usize = 0;
const RSS: usize = 7;
pub const HISTORY: usize = COUNT - 1;

/// HISTORY gets more room than this if there is some.
const SHORTEST_HISTORY: usize = 8;

/// The width of HISTORY where the room is not limited.
const USUAL_HISTORY: usize = 24;

/// Longer names are cut, and end with `…`.
const LONGEST_TEXT: usize = 20;

/// The length of the kernel's longest name (15), and one for the `…` of a cut name.
const LONGEST_COMMAND: usize = 16;

const GAP: usize = 1;

pub type Cells = [String; COUNT];

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

/// A text, cut so that it leaves room for the numbers.
pub fn shortened(text: &str) -> String {
    if text.chars().count() <= LONGEST_TEXT {
        return text.to_owned();
    }
    let start: String = text.chars().take(LONGEST_TEXT - 1).collect();
    start + "…"
}

/// The end of a program's name, which is more specific than its start: as many of a module's last
/// names as fit.
pub fn shortened_command(name: &str) -> String {
    let count = name.chars().count();
    if count <= LONGEST_COMMAND {
        return name.to_owned();
    }
    let room = |rest: &&str| rest.chars().count() < LONGEST_COMMAND;
    let mut after_dots = name.match_indices('.').map(|(dot, _)| &name[dot + 1..]);
    let end = |count: usize| name.chars().skip(count + 1 - LONGEST_COMMAND).collect();
    let rest = after_dots.find(room).filter(|rest| *rest != "py");
    "…".to_owned() + &rest.map_or_else(|| end(count), str::to_owned)
}

/// The newest sizes of a process over time as a line of at most `width` bars.
pub fn sparkline(sizes: &[u64], width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let sizes = &sizes[sizes.len().saturating_sub(width)..];
    let highest = sizes.iter().copied().max().unwrap_or(0);
    let lowest = sizes.iter().copied().min().unwrap_or(0);
    // The scale spans at least a tenth of the size, so that small changes look flat.
    let lowest = lowest.min(highest - highest / 10);
    let bar = |size: &u64| {
        let height = (size - lowest) as f64 / (highest - lowest).max(1) as f64;
        BARS[(height * 7.0).round() as usize]
    };
    sizes.iter().map(bar).collect()
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
    fn a_growing_history_rises_and_a_steady_one_is_flat() {
        assert_eq!(sparkline(&[], 9), "");
        assert_eq!(sparkline(&[0, 0], 9), "▁▁");
        assert_eq!(sparkline(&[1, 100, 150, 200], 3), "▁▅█");
        let flat: Vec<char> = sparkline(&[1000, 1001, 1000], 9).chars().collect();
        assert_eq!(flat[0], flat[1]);
    }
}
