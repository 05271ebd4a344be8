//! The state of `top`, and the effect of each key on it. Independent of the terminal.

use std::collections::HashMap;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::row::{ChannelFilter, NoChannel, Row, Sample};
use super::sort::Order;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Browse,
    /// Keys go into the filter.
    Filter,
    Help,
}

/// The action of the loop after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    None,
    Quit,
    Trim {
        pid: i32,
        start_ticks: u64,
    },
    /// Collect the processes now.
    Refresh,
}

/// The length of a history.
const HISTORY_LEN: usize = 12;

/// The numbers of processes that are not shown, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hidden {
    pub off_screen: usize,
    pub filtered_out: usize,
    pub no_channel: NoChannel,
}

impl Hidden {
    pub fn count(self) -> usize {
        self.off_screen + self.filtered_out + self.no_channel.small + self.no_channel.others
    }

    /// The numbers as text, empty if all processes are shown. `all` is the key or option that shows
    /// processes without a control channel.
    pub fn text(self, all: &str) -> String {
        let counts = [
            (self.off_screen, "off screen"),
            (self.filtered_out, "filtered out"),
            (self.no_channel.small, "small"),
            (self.no_channel.others, "without a channel"),
        ];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        let words = counts.map(|(count, why)| format!("{count} {why}"));
        let words = words.collect::<Vec<_>>().join(", ");
        match self.no_channel == NoChannel::default() {
            true => words,
            false => format!("{words} ({all})"),
        }
    }
}

fn keep_last(sizes: &mut Vec<u64>) {
    let excess = sizes.len().saturating_sub(HISTORY_LEN);
    sizes.drain(..excess);
}

pub struct State {
    rows: Vec<Row>,
    /// Resident sizes by process, identified by pid and start time.
    history: HashMap<(i32, u64), Vec<u64>>,
    no_channel: NoChannel,
    pub order: Order,
    pub filter: String,
    pub channel_filter: ChannelFilter,
    pub mode: Mode,
    pub message: String,
    /// The pid of the selected process. The selection stays with it when rows move.
    selected: Option<i32>,
    /// Rows that fit on the screen; set by drawing.
    pub page: usize,
    pub has_sample: bool,
}

impl State {
    pub fn new(order: Order, filter: String, channel_filter: ChannelFilter) -> Self {
        Self {
            rows: Vec::new(),
            history: HashMap::new(),
            no_channel: NoChannel::default(),
            order,
            filter,
            channel_filter,
            mode: Mode::Browse,
            message: String::new(),
            selected: None,
            page: 10,
            has_sample: false,
        }
    }

    /// Replaces the rows, and adds their sizes to the histories.
    pub fn take(&mut self, sample: Sample) {
        let mut history = HashMap::new();
        self.rows = sample.rows;
        for row in &mut self.rows {
            let process = (row.pid, row.start_ticks);
            let mut sizes = self.history.remove(&process).unwrap_or_default();
            sizes.extend(row.rss_bytes);
            keep_last(&mut sizes);
            // Markers reach further back than samples, and are the same at each start of `top`.
            row.history = match row.marked.is_empty() {
                true => sizes.clone(),
                false => row.marked.iter().copied().chain(row.rss_bytes).collect(),
            };
            keep_last(&mut row.history);
            history.insert(process, sizes);
        }
        self.history = history;
        self.no_channel = sample.no_channel;
        self.has_sample = true;
    }

    /// The processes that are not shown.
    pub fn hidden(&self) -> Hidden {
        let visible = self.visible().len();
        Hidden {
            off_screen: visible.saturating_sub(self.page),
            filtered_out: self.rows.len() - visible,
            no_channel: self.no_channel,
        }
    }

    /// The rows that pass the filter, sorted.
    pub fn visible(&self) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self
            .rows
            .iter()
            .filter(|row| row.contains(&self.filter))
            .collect();
        rows.sort_by(|a, b| self.order.compare(a, b));
        rows
    }

    /// The index of the selected row; the first one if the process is gone.
    pub fn selection(&self) -> Option<usize> {
        let visible = self.visible();
        let place = visible
            .iter()
            .position(|row| Some(row.pid) == self.selected);
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
        match self.mode {
            Mode::Browse => self.browse(key.code),
            Mode::Filter => self.edit(key.code),
            Mode::Help => {
                self.mode = Mode::Browse;
                Action::None
            }
        }
    }

    fn browse(&mut self, code: KeyCode) -> Action {
        match code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('?' | 'h') => self.mode = Mode::Help,
            KeyCode::Char('/') => self.mode = Mode::Filter,
            KeyCode::Char('r') => self.order.descending = !self.order.descending,
            KeyCode::Char('s' | '>') | KeyCode::Right => self.sort_by_neighbour(1),
            KeyCode::Char('<') | KeyCode::Left => self.sort_by_neighbour(-1),
            KeyCode::Char('a') => {
                self.channel_filter = self.channel_filter.toggled();
                return Action::Refresh;
            }
            KeyCode::Char('t') => return self.trim(),
            KeyCode::Char(' ') => return Action::Refresh,
            KeyCode::Down | KeyCode::Char('j') => self.step(1),
            KeyCode::Up | KeyCode::Char('k') => self.step(-1),
            KeyCode::PageDown => self.step(self.page as isize),
            KeyCode::PageUp => self.step(-(self.page as isize)),
            KeyCode::Home => self.step(isize::MIN),
            KeyCode::End => self.step(isize::MAX),
            _ => {}
        }
        Action::None
    }

    fn edit(&mut self, code: KeyCode) -> Action {
        match code {
            KeyCode::Enter => self.mode = Mode::Browse,
            KeyCode::Esc => {
                self.filter.clear();
                self.mode = Mode::Browse;
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(c) => self.filter.push(c),
            _ => {}
        }
        Action::None
    }

    fn sort_by_neighbour(&mut self, step: isize) {
        self.order = Order::by(self.order.key.neighbour(step));
    }

    fn step(&mut self, step: isize) {
        let Some(place) = self.selection() else {
            return;
        };
        let visible = self.visible();
        let target = (place as isize)
            .saturating_add(step)
            .clamp(0, visible.len() as isize - 1);
        self.selected = visible.get(target as usize).map(|row| row.pid);
    }

    fn trim(&mut self) -> Action {
        let Some((pid, start_ticks)) = self.selection().and_then(|place| {
            self.visible()
                .get(place)
                .map(|row| (row.pid, row.start_ticks))
        }) else {
            return Action::None;
        };
        self.message = format!("{pid}: trimming");
        self.selected = Some(pid);
        Action::Trim { pid, start_ticks }
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
