//! The columns of `top`, the most important first: a narrow terminal drops them from the right, and
//! never cuts a number.

pub const COUNT: usize = 14;

pub const HEADINGS: [&str; COUNT] = [
    "PID",
    "SITE",
    "PROC",
    "ROUND",
    "STAGE",
    "RSS",
    "HISTORY",
    "LIVE",
    "CACHED",
    "RETAINED",
    "LIMIT",
    "COMMAND",
    "ALLOCATOR",
    "ROLE",
];

/// Numbers.
pub const RIGHT_ALIGNED: [usize; 7] = [0, 3, 5, 7, 8, 9, 10];

/// Names that came from elsewhere are cut here, and say so.
const LONGEST_TEXT: usize = 20;

const GAP: usize = 1;

pub type Cells = [String; COUNT];

/// How wide each column must be for its cells to be whole.
pub fn widths(rows: &[Cells]) -> [usize; COUNT] {
    std::array::from_fn(|column| {
        let widest = rows.iter().map(|row| row[column].chars().count()).max();
        widest.unwrap_or(0).max(HEADINGS[column].len())
    })
}

/// How many columns, from the left, fit whole.
pub fn fitting(widths: &[usize; COUNT], room: usize) -> usize {
    let mut used = 0;
    let fit = widths.iter().take_while(|width| {
        used += **width + GAP;
        used <= room + GAP
    });
    fit.count().max(1)
}

/// A text that does not push numbers off the screen.
pub fn shortened(text: &str) -> String {
    if text.chars().count() <= LONGEST_TEXT {
        return text.to_owned();
    }
    let start: String = text.chars().take(LONGEST_TEXT - 1).collect();
    start + "…"
}

/// The sizes of a process over time, in the height of a line.
pub fn sparkline(sizes: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let highest = sizes.iter().copied().max().unwrap_or(0);
    let lowest = sizes.iter().copied().min().unwrap_or(0);
    // A flat process looks flat: never less than a tenth of its size from bottom to top.
    let lowest = lowest.min(highest - highest / 10);
    let bar = |size: &u64| {
        let height = (size - lowest) as f64 / (highest - lowest).max(1) as f64;
        BARS[(height * 7.0).round() as usize]
    };
    sizes.iter().map(bar).collect()
}

/// Lines for a pipe or for a terminal of so many columns.
pub fn table(rows: &[Cells], room: Option<usize>) -> String {
    let widths = widths(rows);
    let count = room.map_or(COUNT, |room| fitting(&widths, room));
    let headings = HEADINGS.map(str::to_owned);
    let mut text = String::new();
    for row in std::iter::once(&headings).chain(rows) {
        let cells = row.iter().zip(widths).enumerate().take(count);
        let cells: Vec<String> = cells
            .map(
                |(column, (cell, width))| match RIGHT_ALIGNED.contains(&column) {
                    true => format!("{cell:>width$}"),
                    false => format!("{cell:<width$}"),
                },
            )
            .collect();
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
    fn a_narrow_terminal_drops_columns_and_no_digit() {
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
        assert!(table(&rows, None).contains("ROLE"));
    }

    #[test]
    fn eighty_columns_show_what_a_process_holds_and_how_it_grows() {
        let mut cells = row("1234567", "1023.9 MB");
        for (column, text) in [
            (1, "site-1"),
            (2, "TR"),
            (3, "100"),
            (4, "before_aggregation"),
            (6, "▁▁▁▁▁▁▁▁▁▁▁▁"),
            (7, "1000.0 MB"),
        ] {
            cells[column] = text.to_owned();
        }
        let text = table(&[cells], Some(80));
        assert!(
            text.contains("1023.9 MB") && text.contains("▁") && text.contains("1000.0 MB"),
            "{text}"
        );
    }

    #[test]
    fn a_long_name_is_cut_and_says_so() {
        assert_eq!(shortened("site-1"), "site-1");
        let cut = shortened(&"é".repeat(99));
        assert_eq!(
            (cut.chars().count(), cut.ends_with('…')),
            (LONGEST_TEXT, true)
        );
    }

    #[test]
    fn a_history_rises_and_a_flat_one_is_flat() {
        assert_eq!(sparkline(&[]), "");
        assert_eq!(sparkline(&[0, 0]), "▁▁");
        assert_eq!(sparkline(&[100, 150, 200]), "▁▅█");
        let flat: Vec<char> = sparkline(&[1000, 1001, 1000]).chars().collect();
        assert_eq!(flat[0], flat[1]);
    }
}
