//! The columns of `top`, and texts that fit into them.

pub struct Column {
    pub heading: &'static str,
    /// A column of numbers is aligned to the right.
    pub is_number: bool,
    /// The most important column has 0; the others leave first.
    pub rank: usize,
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
pub const RSS: usize = 7;
pub const HISTORY: usize = COUNT - 1;

/// Longer names are cut, and end with `…`.
const LONGEST_TEXT: usize = 20;

/// The length of the kernel's longest name (15), and one for the `…` of a cut name.
const LONGEST_COMMAND: usize = 16;

pub type Cells = [String; COUNT];

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

#[cfg(test)]
mod tests {
    use super::*;

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
