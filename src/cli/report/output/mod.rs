//! Shows the reports: tables on a terminal, an HTML page, charts, JSON and Prometheus metrics.
//!
//! An output only formats. It judges nothing, so all outputs agree.

pub mod chart;
pub mod comparison;
pub mod html;
pub mod json;
pub mod print;
pub mod prometheus;
pub mod request;

use maud::{html, Markup};

use crate::output::{table, tight, wrapped};
use chart::Chart;

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

/// `site-1 TR; site-2 TR; site-3 TR; and 4 more`
pub fn listed(names: &[String]) -> String {
    /// More names are counted.
    const MAX_NAMED: usize = 3;
    let (named, more) = names.split_at(names.len().min(MAX_NAMED));
    match more.len() {
        0 => named.join("; "),
        n => format!("{}; and {n} more", named.join("; ")),
    }
}

/// A table for a terminal or a page: columns of words, then columns of numbers. Each line of a cell is a
/// part of its value.
pub struct Grid {
    pub headings: Vec<String>,
    /// The number of columns with words.
    pub words: usize,
    pub rows: Vec<Vec<String>>,
}

/// A heading, and the cell below it for an item.
pub type Column<'a, T> = (&'a str, &'a dyn Fn(&T) -> String);

impl Grid {
    /// A row for each item. The first columns have words.
    pub fn of<T>(items: &[T], words: usize, columns: &[Column<T>]) -> Grid {
        let row = |item: &T| columns.iter().map(|(_, cell)| cell(item)).collect();
        let headings = columns.iter().map(|(heading, _)| (*heading).to_owned());
        Grid {
            headings: headings.collect(),
            words,
            rows: items.iter().map(row).collect(),
        }
    }

    pub fn text(&self) -> String {
        let headings = self.headings.iter();
        let mut table = table(headings.map(|heading| heading.to_uppercase()));
        table.add_rows(&self.rows);
        tight(table, self.words..self.headings.len())
    }

    /// A table that a click on a heading sorts. A narrow screen scrolls it. `cell` shows a cell by its row and column.
    /// The column `head` names the rows.
    pub fn page(
        &self,
        caption: &str,
        head: usize,
        cell: impl Fn(usize, usize, &str) -> Markup,
    ) -> Markup {
        let class = |column: usize| (column >= self.words).then_some("n");
        html! {
            div.wide role="region" aria-label=(caption) tabindex="0" {
                table.sortable {
                    caption { (caption) }
                    thead {
                        tr {
                            @for (column, heading) in self.headings.iter().enumerate() {
                                th class=[class(column)] scope="col" { (heading) }
                            }
                        }
                    }
                    tbody {
                        @for (row, cells) in self.rows.iter().enumerate() {
                            tr {
                                @for (column, text) in cells.iter().enumerate() {
                                    @let shown = cell(row, column, text);
                                    @if column == head { th scope="row" { (shown) } }
                                    @else { td class=[class(column)] { (shown) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A comparison as all outputs show it: a sentence, a table, notes, and lines over time.
pub struct Summary {
    pub program: &'static str,
    pub heading: &'static str,
    pub sentence: String,
    pub caption: &'static str,
    pub grid: Grid,
    pub notes: Vec<String>,
    pub chart: Chart,
}

impl Summary {
    pub fn text(&self, width: Option<usize>) -> String {
        let lines = |text: &String| wrapped(text, "", "", width);
        let notes: String = self.notes.iter().map(lines).collect();
        let mut text = lines(&self.sentence);
        if !self.grid.rows.is_empty() {
            text += &format!("\n{}", self.grid.text());
        }
        if !notes.is_empty() {
            text += "\n";
        }
        text + &notes
    }

    pub fn page(&self) -> String {
        html::document(
            self.program,
            &html! {
                header { h1 { (self.heading) } }
                main {
                    section {
                        p.evidence { (self.sentence) }
                        (self.chart.figure())
                    }
                    section {
                        (self.grid.page(self.caption, 0, |_, _, text| html! { (text) }))
                        @for note in &self.notes { p.evidence { (note) } }
                    }
                }
            },
        )
    }
}
