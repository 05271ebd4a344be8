//! The columns of `top`, the most important first. Columns without values are left out. A narrow
//! terminal drops columns from the right, and never cuts a number.

pub const COUNT: usize = 14;

pub const HEADINGS: [&str; COUNT] = [
    "PID",
    "SITE",
    "PROC",
    "ROUND",
    "STAGE",
    "RSS",
    "COMMAND",
    "HISTORY",
    "LIVE",
    "CACHED",
    "RETAINED",
    "LIMIT",
    "ALLOCATOR",
    "ROLE",
];

/// The columns with numbers.
pub const RIGHT_ALIGNED: [usize; 7] = [0, 3, 5, 8, 9, 10, 11];

/// Longer names are cut, and end with `…`.
const LONGEST_TEXT: usize = 20;

/// The length of the kernel's longest name (15), and one for the `…` of a cut name.
const LONGEST_COMMAND: usize = 16;

const GAP: usize = 1;

pub type Cells = [String; COUNT];

/// The width of each column that shows all cells whole.
pub fn widths(rows: &[Cells]) -> [usize; COUNT] {
    std::array::from_fn(|column| {
        let widest = rows.iter().map(|row| row[column].chars().count()).max();
        widest.unwrap_or(0).max(HEADINGS[column].len())
    })
}

/// The columns to show: those with values, from the left, as many as fit.
pub fn shown(rows: &[Cells], widths: &[usize; COUNT], room: usize) -> Vec<usize> {
    let has_values = |column: &usize| {
        let has_value = |row: &Cells| !["", "-"].contains(&row[*column].as_str());
        *column == 0 || rows.is_empty() || rows.iter().any(has_value)
    };
    let mut used = 0;
    let fits = |column: &usize| {
        used += widths[*column] + GAP;
        *column == 0 || used <= room.saturating_add(GAP)
    };
    (0..COUNT).filter(has_values).take_while(fits).collect()
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

/// The sizes of a process over time as a line of bars.
pub fn sparkline(sizes: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
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
pub fn table(rows: &[Cells], room: Option<usize>) -> String {
    let widths = widths(rows);
    let columns = shown(rows, &widths, room.unwrap_or(usize::MAX));
    let headings = HEADINGS.map(str::to_owned);
    let mut text = String::new();
    for row in std::iter::once(&headings).chain(rows) {
        let cells = columns.iter().map(|column| {
            let (cell, width) = (&row[*column], widths[*column]);
            match RIGHT_ALIGNED.contains(column) {
                true => format!("{cell:>width$}"),
                false => format!("{cell:<width$}"),
            }
        });
        let cells: Vec<String> = cells.collect();
        text += cells.join(" ").trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(pid: &str, rss: &str) -> Cells {
        let mut cells: Cells = std::array::from_fn(|_| "-".to_owned());
        cells[0] = pid.to_owned();
        cells[5] = rss.to_owned();
        cells
    }

    #[test]
    fn a_narrow_terminal_drops_columns_but_no_digits() {
        let rows = [row("27478", "107.2 MB"), row("1234567", "9.9 GB")];
        for room in 7..200 {
            let text = table(&rows, Some(room));
            assert!(
                text.lines().all(|line| line.chars().count() <= room),
                "{text}"
            );
            assert!(
                text.lines().nth(1).unwrap().starts_with("  27478"),
                "{text}"
            );
            assert_eq!(text.contains("RSS"), text.contains("107.2 MB"), "{text}");
        }
    }

    #[test]
    fn a_column_without_values_is_left_out() {
        let mut filled = row("1", "1 B");
        filled[6] = "train.py".to_owned();
        filled[13] = "client".to_owned();
        let text = table(&[row("2", "2 B"), filled], None);
        let headings: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
        assert_eq!(headings, ["PID", "RSS", "COMMAND", "ROLE"]);
        assert!(table(&[], None).contains("SITE"));
    }

    #[test]
    fn eighty_columns_show_the_size_the_command_and_the_history() {
        let mut cells = row("1234567", "1023.9 MB");
        for (column, text) in [
            (1, "site-1"),
            (2, "TR"),
            (3, "100"),
            (4, "before_aggregation"),
            (6, "train.py"),
            (7, "▁▁▁▁▁▁▁▁▁▁▁▁"),
        ] {
            cells[column] = text.to_owned();
        }
        let text = table(&[cells], Some(80));
        assert!(
            text.contains("1023.9 MB") && text.contains("train.py") && text.contains("▁"),
            "{text}"
        );
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
        assert_eq!(sparkline(&[]), "");
        assert_eq!(sparkline(&[0, 0]), "▁▁");
        assert_eq!(sparkline(&[100, 150, 200]), "▁▅█");
        let flat: Vec<char> = sparkline(&[1000, 1001, 1000]).chars().collect();
        assert_eq!(flat[0], flat[1]);
    }
}
