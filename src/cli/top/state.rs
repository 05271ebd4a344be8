//! The state of `top`, and the effect of each key on it. Independent of the terminal.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::widgets::TableState;

use super::row::{Row, Sample};
use super::table::{Order, COUNT};
use crate::proc::Process;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum View {
    #[default]
    Table,
    /// Keys go into the filter.
    Filter,
    /// Everything about one process.
    Detail(Process),
}

/// The action of the loop after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Quit,
    Trim(Process),
    /// Collect the processes now.
    Refresh,
}

/// The growth per minute is that of this time.
const GROWTH_TIME: Duration = Duration::from_secs(120);
/// The growth of a shorter time is not shown.
const MIN_GROWTH_TIME: Duration = Duration::from_secs(5);

/// Bytes per minute.
fn growth_per_minute(sizes: &[(Instant, u64)]) -> Option<f64> {
    let ((then, oldest), (now, newest)) = (sizes.first()?, sizes.last()?);
    let time = now.duration_since(*then);
    let bytes = *newest as f64 - *oldest as f64;
    (time >= MIN_GROWTH_TIME).then(|| bytes / time.as_secs_f64() * 60.0)
}

#[derive(Default)]
pub struct State {
    pub sample: Option<Sample>,
    /// Resident sizes of the last two minutes.
    pub sizes: HashMap<Process, Vec<(Instant, u64)>>,
    pub order: Order,
    pub filter: String,
    /// Also the processes without a control channel.
    pub shows_all: bool,
    pub view: View,
    pub message: String,
    /// The selection stays with the process when rows move.
    pub selected: Option<Process>,
    /// The first row on the screen.
    pub table: TableState,
    /// Rows that fit on the screen; set by drawing.
    pub page: usize,
    /// The columns on the screen; set by drawing.
    pub shown: Vec<usize>,
    /// The first line of the detail view that is shown. Drawing limits it.
    pub scroll: usize,
}

impl State {
    /// Replaces the rows, and computes their growth.
    pub fn take(&mut self, mut sample: Sample, now: Instant) {
        let mut before = std::mem::take(&mut self.sizes);
        for row in &mut sample.rows {
            let mut sizes = before.remove(&row.process).unwrap_or_default();
            sizes.retain(|(at, _)| now.duration_since(*at) <= GROWTH_TIME);
            sizes.extend(row.rss_bytes.map(|bytes| (now, bytes)));
            row.growth_per_minute = growth_per_minute(&sizes);
            self.sizes.insert(row.process, sizes);
        }
        self.sample = Some(sample);
    }

    /// The rows that pass the filter, sorted.
    pub fn visible(&self) -> Vec<&Row> {
        let rows = self.sample.iter().flat_map(|sample| &sample.rows);
        let mut rows: Vec<&Row> = rows.filter(|row| row.contains(&self.filter)).collect();
        rows.sort_by(|a, b| self.order.compare(a, b));
        rows
    }

    /// The index of the selected row; the first one if the process is gone.
    pub fn selection(&self) -> Option<usize> {
        let visible = self.visible();
        let is_selected = |row: &&Row| Some(row.process) == self.selected;
        let place = visible.iter().position(is_selected);
        place.or((!visible.is_empty()).then_some(0))
    }

    pub fn key(&mut self, key: KeyEvent) -> Option<Action> {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return (key.code == KeyCode::Char('c')).then_some(Action::Quit);
        }
        match self.view {
            View::Table => self.browse(key.code),
            View::Filter => self.edit(key.code),
            View::Detail(process) => self.read(key.code, process),
        }
    }

    /// The number of lines by which a key moves.
    fn step(&self, code: KeyCode) -> Option<isize> {
        let page = self.page as isize;
        match code {
            KeyCode::Down | KeyCode::Char('j') => Some(1),
            KeyCode::Up | KeyCode::Char('k') => Some(-1),
            KeyCode::PageDown => Some(page),
            KeyCode::PageUp => Some(-page),
            KeyCode::Home => Some(isize::MIN),
            KeyCode::End => Some(isize::MAX),
            _ => None,
        }
    }

    /// A key in the detail view.
    fn read(&mut self, code: KeyCode, process: Process) -> Option<Action> {
        match (code, self.step(code)) {
            (KeyCode::Char(' '), _) => self.scroll += self.page,
            (KeyCode::Char('t'), _) => return Some(self.trim(process)),
            (_, Some(step)) => self.scroll = self.scroll.saturating_add_signed(step),
            (_, None) => self.view = View::Table,
        }
        None
    }

    fn browse(&mut self, code: KeyCode) -> Option<Action> {
        match code {
            KeyCode::Char('q') => return Some(Action::Quit),
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('/') => self.view = View::Filter,
            KeyCode::Char('r') => self.order.descending = !self.order.descending,
            KeyCode::Char('s' | '>') | KeyCode::Right => self.sort_by_neighbour(1),
            KeyCode::Char('<') | KeyCode::Left => self.sort_by_neighbour(COUNT - 1),
            KeyCode::Char('a') => {
                self.shows_all = !self.shows_all;
                return Some(Action::Refresh);
            }
            KeyCode::Char(' ') => return Some(Action::Refresh),
            KeyCode::Enter => {
                let process = self.select(0)?;
                (self.view, self.scroll) = (View::Detail(process), 0);
                return Some(Action::Refresh);
            }
            KeyCode::Char('t') => return self.select(0).map(|process| self.trim(process)),
            _ => drop(self.step(code).and_then(|step| self.select(step))),
        }
        None
    }

    fn edit(&mut self, code: KeyCode) -> Option<Action> {
        match code {
            KeyCode::Enter => self.view = View::Table,
            KeyCode::Esc => (self.view, self.filter) = (View::Table, String::new()),
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(c) => self.filter.push(c),
            _ => {}
        }
        None
    }

    /// Sorts by the next shown column in steps of `step`, modulo the number of columns.
    fn sort_by_neighbour(&mut self, step: usize) {
        let columns = (1..=COUNT).map(|count| (self.order.column + count * step) % COUNT);
        if let Some(next) = { columns }.find(|column| self.shown.contains(column)) {
            self.order = Order::by(next);
        }
    }

    /// Moves the selection, and returns the selected process.
    fn select(&mut self, step: isize) -> Option<Process> {
        let place = self.selection()?;
        let visible = self.visible();
        let place = place.saturating_add_signed(step).min(visible.len() - 1);
        self.selected = Some(visible[place].process);
        self.selected
    }

    fn trim(&mut self, process: Process) -> Action {
        self.message = format!("{}: trimming", process.pid);
        Action::Trim(process)
    }
}

#[cfg(test)]
mod tests;
