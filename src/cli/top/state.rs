//! The state of `top`, and the effect of each key on it. Independent of the terminal.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::row::{Row, Sample};
use super::table::{Order, COUNT};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum View {
    Table,
    /// Keys go into the filter.
    Filter,
    Help,
    /// Everything about one process, if its answer has arrived.
    Detail(Target, Option<String>),
}

/// The action of the loop after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    None,
    Quit,
    Trim(Target),
    /// Read everything about the process.
    Detail(Target),
    /// Collect the processes now.
    Refresh,
}

/// A process, which is not another one with the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Target {
    pub pid: i32,
    pub start_ticks: u64,
}

impl Target {
    fn of(row: &Row) -> Self {
        let (pid, start_ticks) = (row.pid, row.start_ticks);
        Self { pid, start_ticks }
    }
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

pub struct State {
    pub sample: Sample,
    pub has_sample: bool,
    /// Resident sizes of the last two minutes.
    sizes: HashMap<Target, Vec<(Instant, u64)>>,
    pub order: Order,
    pub filter: String,
    /// Also the processes without a control channel.
    pub shows_all: bool,
    pub view: View,
    pub message: String,
    /// The selection stays with the process when rows move.
    selected: Option<Target>,
    /// Rows that fit on the screen; set by drawing.
    pub page: usize,
    /// The columns on the screen; set by drawing.
    pub shown: Vec<usize>,
    /// The first line of the detail view or of the help that is shown.
    pub scroll: usize,
}

impl State {
    pub fn new(order: Order, filter: String, shows_all: bool) -> Self {
        Self {
            sample: Sample::default(),
            has_sample: false,
            sizes: HashMap::new(),
            order,
            filter,
            shows_all,
            view: View::Table,
            message: String::new(),
            selected: None,
            page: 10,
            shown: (0..COUNT).collect(),
            scroll: 0,
        }
    }

    /// Replaces the rows, and computes their growth.
    pub fn take(&mut self, sample: Sample, now: Instant) {
        let mut before = std::mem::take(&mut self.sizes);
        self.sample = sample;
        for row in &mut self.sample.rows {
            let mut sizes = before.remove(&Target::of(row)).unwrap_or_default();
            sizes.retain(|(at, _)| now.duration_since(*at) <= GROWTH_TIME);
            sizes.extend(row.rss_bytes.map(|bytes| (now, bytes)));
            row.growth_per_minute = growth_per_minute(&sizes);
            self.sizes.insert(Target::of(row), sizes);
        }
        self.has_sample = true;
    }

    /// The rows that pass the filter, sorted.
    pub fn visible(&self) -> Vec<&Row> {
        let rows = self.sample.rows.iter();
        let mut rows: Vec<&Row> = rows.filter(|row| row.contains(&self.filter)).collect();
        rows.sort_by(|a, b| self.order.compare(a, b));
        rows
    }

    /// The index of the selected row; the first one if the process is gone.
    pub fn selection(&self) -> Option<usize> {
        let visible = self.visible();
        let is_selected = |row: &&Row| Some(Target::of(row)) == self.selected;
        let place = visible.iter().position(is_selected);
        place.or((!visible.is_empty()).then_some(0))
    }

    pub fn key(&mut self, key: KeyEvent) -> Action {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Action::Quit,
                KeyCode::Char('l') => Action::Refresh,
                _ => Action::None,
            };
        }
        match self.view {
            View::Table => self.browse(key.code),
            View::Filter => self.edit(key.code),
            View::Help | View::Detail(..) => self.read(key.code),
        }
    }

    /// A key in the help or in the detail view. Drawing limits `scroll` to the length of the text.
    fn read(&mut self, code: KeyCode) -> Action {
        match (code, &self.view) {
            (KeyCode::Down | KeyCode::Char('j'), _) => self.scroll = self.scroll.saturating_add(1),
            (KeyCode::Up | KeyCode::Char('k'), _) => self.scroll = self.scroll.saturating_sub(1),
            (KeyCode::PageDown | KeyCode::Char(' '), _) => self.scroll += self.page,
            (KeyCode::PageUp, _) => self.scroll = self.scroll.saturating_sub(self.page),
            (KeyCode::Home, _) => self.scroll = 0,
            (KeyCode::End, _) => self.scroll = usize::MAX,
            (KeyCode::Char('t'), &View::Detail(target, _)) => return self.trim(target),
            (KeyCode::Char('?' | 'h'), View::Detail(..)) => self.open(View::Help),
            _ => self.view = View::Table,
        }
        Action::None
    }

    fn browse(&mut self, code: KeyCode) -> Action {
        match code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('?' | 'h') => self.open(View::Help),
            KeyCode::Char('/') => self.view = View::Filter,
            KeyCode::Char('r') => self.order.descending = !self.order.descending,
            KeyCode::Char('s' | '>') | KeyCode::Right => self.sort_by_neighbour(1),
            KeyCode::Char('<') | KeyCode::Left => self.sort_by_neighbour(COUNT - 1),
            KeyCode::Char('a') => {
                self.shows_all = !self.shows_all;
                return Action::Refresh;
            }
            KeyCode::Char(' ') => return Action::Refresh,
            KeyCode::Enter => {
                if let Some(target) = self.select(0) {
                    self.open(View::Detail(target, None));
                    return Action::Detail(target);
                }
            }
            KeyCode::Char('t') => {
                if let Some(target) = self.select(0) {
                    return self.trim(target);
                }
            }
            KeyCode::Down | KeyCode::Char('j') => drop(self.select(1)),
            KeyCode::Up | KeyCode::Char('k') => drop(self.select(-1)),
            KeyCode::PageDown => drop(self.select(self.page as isize)),
            KeyCode::PageUp => drop(self.select(-(self.page as isize))),
            KeyCode::Home => drop(self.select(isize::MIN)),
            KeyCode::End => drop(self.select(isize::MAX)),
            _ => {}
        }
        Action::None
    }

    fn edit(&mut self, code: KeyCode) -> Action {
        match code {
            KeyCode::Enter => self.view = View::Table,
            KeyCode::Esc => {
                self.filter.clear();
                self.view = View::Table;
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(c) => self.filter.push(c),
            _ => {}
        }
        Action::None
    }

    /// Sorts by the next shown column in steps of `step`, modulo the number of columns.
    fn sort_by_neighbour(&mut self, step: usize) {
        let columns = (1..=COUNT).map(|count| (self.order.column + count * step) % COUNT);
        if let Some(next) = { columns }.find(|column| self.shown.contains(column)) {
            self.order = Order::by(next);
        }
    }

    /// Moves the selection, and returns the selected process.
    fn select(&mut self, step: isize) -> Option<Target> {
        let place = self.selection()?;
        let visible = self.visible();
        let place = place.saturating_add_signed(step).min(visible.len() - 1);
        self.selected = Some(Target::of(visible[place]));
        self.selected
    }

    fn trim(&mut self, target: Target) -> Action {
        self.message = format!("{}: trimming", target.pid);
        Action::Trim(target)
    }

    fn open(&mut self, view: View) {
        (self.view, self.scroll) = (view, 0);
    }

    /// Shows the text, unless another process or none is shown by now.
    pub fn show_detail(&mut self, of: Target, text: String) {
        if let View::Detail(target, shown) = &mut self.view
            && *target == of
        {
            *shown = Some(text);
        }
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
