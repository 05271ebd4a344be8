//! How much is shown of many processes: what people can read, and a browser can show.

pub mod chart;
pub mod html;
pub mod json;
pub mod print;
pub mod prometheus;
pub mod write;

pub struct Limits {
    pub all: bool,
}

/// Rows of the overview on a terminal.
pub const ROWS: usize = 40;
/// Processes shown with their stages on a terminal.
pub const DETAILS: usize = 10;
/// Rows of the overview on a page.
pub const LISTED: usize = 1000;
/// Processes drawn in charts.
pub const DRAWN: usize = 32;

impl Limits {
    /// The first of the list, and how many more there are.
    pub fn shown<'a, T>(&self, list: &'a [T], most: usize) -> (&'a [T], usize) {
        let shown = if self.all {
            list.len()
        } else {
            list.len().min(most)
        };
        (&list[..shown], list.len() - shown)
    }
}
