//! The table of a comparison: on a terminal, in Markdown, and on a page.

use maud::{html, Markup};

use super::{html::table, narrow};
use crate::output;

/// Columns of words, then columns of numbers. Each line of a cell is a part of its value.
pub struct Grid {
    pub words: &'static [&'static str],
    pub numbers: Vec<&'static str>,
    pub rows: Vec<Vec<String>>,
}

impl Grid {
    /// A name is not repeated below itself.
    pub fn text(&self) -> String {
        let mut table = output::table([self.words, &self.numbers].concat());
        let mut name = "";
        for row in &self.rows {
            let shown = if row[0] == name { "" } else { &row[0] };
            name = &row[0];
            table.add_row(
                [shown]
                    .into_iter()
                    .chain(row[1..].iter().map(String::as_str)),
            );
        }
        let columns = self.words.len() + self.numbers.len();
        narrow(table, self.words.len()..columns)
    }

    pub fn markdown(&self) -> String {
        let line = |cells: &str| format!("| {} |\n", cells.replace('\n', ", "));
        let mut text = line(&[self.words, &self.numbers].concat().join(" | "));
        let [words, numbers] = [self.words.len(), self.numbers.len()];
        text += &format!("|{}{}\n", "---|".repeat(words), "--:|".repeat(numbers));
        text.extend(self.rows.iter().map(|row| line(&row.join(" | "))));
        text
    }

    pub fn page(&self, id: &str, caption: &str) -> Markup {
        let rows = html! {
            @for row in &self.rows {
                tr {
                    th scope="row" { (row[0]) }
                    @for (column, cell) in row.iter().enumerate().skip(1) {
                        td.n[column >= self.words.len()] { @for part in cell.lines() { (part) br; } }
                    }
                }
            }
        };
        table(id, caption, self.words, &self.numbers, &rows)
    }
}
