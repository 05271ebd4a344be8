//! Shows the reports: tables on a terminal, an HTML page, charts, JSON and Prometheus metrics.
//!
//! An output only formats. It judges nothing, so all outputs agree.

pub mod chart;
pub mod comparison;
pub mod grid;
pub mod html;
pub mod json;
pub mod print;
pub mod prometheus;
pub mod request;
pub mod write;

use std::ops::Range;

use comfy_table::Table;

use crate::output::{align_right, fill, render, terminal_width};

/// Rows of the overview on a terminal.
const OVERVIEW_ROWS: usize = 40;
/// Processes shown with their stages on a terminal.
const DETAILED_PROCESSES: usize = 10;
/// Rows of the overview on a page.
const PAGE_ROWS: usize = 1000;
/// Processes drawn in charts. A browser is slow with more.
const CHARTED_PROCESSES: usize = 32;

/// How much of a long list is shown.
#[derive(Clone, Copy)]
pub enum ListLength {
    Short,
    Full,
}

impl ListLength {
    /// The items that are shown, at most `max` of a short list, and the number of the others.
    pub fn split<T>(self, list: &[T], max: usize) -> (&[T], usize) {
        let shown = match self {
            ListLength::Short => list.len().min(max),
            ListLength::Full => list.len(),
        };
        (&list[..shown], list.len() - shown)
    }
}

/// One space between columns, to fit into 80 columns. Numbers are aligned to the right.
pub fn narrow(mut table: Table, numbers: Range<usize>) -> String {
    align_right(&mut table, numbers);
    table.column_iter_mut().for_each(|column| {
        column.set_padding((0, 1));
    });
    render(&table)
}

/// Wraps at the width of the terminal. In a pipe the text stays one line, which is easier to search.
pub fn lines(text: &str, first: &str, later: &str) -> String {
    let width = terminal_width().map_or(usize::MAX, usize::from);
    let room = width.saturating_sub(later.len().max(first.len())).max(20);
    let joint = format!("\n{later}");
    format!("{first}{}\n", fill(text.split(' '), room).join(&joint))
}
