//! The state of `top`, and the effect of each key on it. Independent of the terminal.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::columns::COUNT;
use super::row::{ChannelFilter, NoChannel, Row, Sample};
use super::sort::Order;
use crate::proc::Room;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Browse,
    /// Keys go into the filter.
    Filter,
    Help,
    /// Everything about one process.
    Detail,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    pub pid: i32,
    pub start_ticks: u64,
}

/// The length of a history: as wide as a large screen.
const HISTORY_LEN: usize = 300;
/// The growth per minute is that of this time.
const GROWTH_TIME: Duration = Duration::from_secs(120);
/// The growth of a shorter time is not shown.
const MIN_GROWTH_TIME: Duration = Duration::from_secs(5);

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

/// The resident sizes of a process.
#[derive(Default)]
struct Sizes {
    /// At the markers before the first update.
    marked: Vec<u64>,
    /// At each update.
    watched: Vec<(Instant, u64)>,
}

impl Sizes {
    fn push(&mut self, at: Instant, bytes: u64) {
        self.watched.push((at, bytes));
        let excess = self.watched.len().saturating_sub(HISTORY_LEN);
        self.watched.drain(..excess);
    }

    fn history(&self) -> Vec<u64> {
        let watched = self.watched.iter().map(|(_, bytes)| *bytes);
        self.marked.iter().copied().chain(watched).collect()
    }

    /// Bytes per minute.
    fn growth_per_minute(&self) -> Option<f64> {
        let (now, newest) = *self.watched.last()?;
        let is_recent = |at: &Instant| now.duration_since(*at) <= GROWTH_TIME;
        let (then, oldest) = *self.watched.iter().find(|(at, _)| is_recent(at))?;
        let time = now.duration_since(then);
        let bytes = newest as f64 - oldest as f64;
        (time >= MIN_GROWTH_TIME).then(|| bytes / time.as_secs_f64() * 60.0)
    }
}

pub struct State {
    rows: Vec<Row>,
    /// Resident sizes by process, identified by pid and start time.
    history: HashMap<(i32, u64), Sizes>,
    no_channel: NoChannel,
    pub room: Option<Room>,
    pub order: Order,
    pub filter: String,
    pub channel_filter: ChannelFilter,
    pub mode: Mode,
    pub message: String,
    /// The pid of the selected process. The selection stays with it when rows move.
    selected: Option<i32>,
    /// Rows that fit on the screen; set by drawing.
    pub page: usize,
    /// The columns on the screen; set by drawing.
    pub shown: Vec<usize>,
    pub has_sample: bool,
    /// The process of the detail view, and its text, if it has arrived.
    pub detail: Option<(Target, Option<String>)>,
    /// The first line of the detail view or of the help that is shown.
    pub scroll: usize,
}

impl State {
    pub fn new(order: Order, filter: String, channel_filter: ChannelFilter) -> Self {
        Self {
            rows: Vec::new(),
            history: HashMap::new(),
            no_channel: NoChannel::default(),
            room: None,
            order,
            filter,
            channel_filter,
            mode: Mode::Browse,
            message: String::new(),
            selected: None,
            page: 10,
            shown: (0..COUNT).collect(),
            has_sample: false,
            detail: None,
            scroll: 0,
        }
    }

    /// Replaces the rows, and adds their sizes to the histories.
    pub fn take(&mut self, sample: Sample) {
        let mut history = HashMap::new();
        self.rows = sample.rows;
        for row in &mut self.rows {
            let process = (row.pid, row.start_ticks);
            let mut sizes = self.history.remove(&process).unwrap_or_else(|| Sizes {
                marked: std::mem::take(&mut row.marked),
                ..Sizes::default()
            });
            if let Some(bytes) = row.rss_bytes {
                sizes.push(sample.at, bytes);
            }
            row.growth_per_minute = sizes.growth_per_minute();
            row.history = sizes.history();
            history.insert(process, sizes);
        }
        self.history = history;
        self.no_channel = sample.no_channel;
        self.room = sample.room;
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
            Mode::Help | Mode::Detail => self.read(key.code),
        }
    }

    /// A key in the help or in the detail view.
    fn read(&mut self, code: KeyCode) -> Action {
        let page = self.page as isize;
        match code {
            KeyCode::Down | KeyCode::Char('j') => self.scroll_by(1),
            KeyCode::Up | KeyCode::Char('k') => self.scroll_by(-1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll_by(page),
            KeyCode::PageUp => self.scroll_by(-page),
            KeyCode::Home => self.scroll = 0,
            KeyCode::End => self.scroll = usize::MAX,
            KeyCode::Char('t') if self.mode == Mode::Detail => return self.trim(),
            KeyCode::Char('?' | 'h') if self.mode == Mode::Detail => self.open_help(),
            _ => {
                self.mode = Mode::Browse;
                self.detail = None;
            }
        }
        Action::None
    }

    /// Drawing limits the value to the length of the text.
    fn scroll_by(&mut self, lines: isize) {
        self.scroll = self.scroll.saturating_add_signed(lines);
    }

    fn browse(&mut self, code: KeyCode) -> Action {
        match code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('?' | 'h') => self.open_help(),
            KeyCode::Enter => return self.open_detail(),
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
        self.order = Order::by(self.order.key.neighbour(step, &self.shown));
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
        let shown = self.detail.as_ref().map(|(target, _)| *target);
        let Some(target) = shown.or_else(|| self.target()) else {
            return Action::None;
        };
        self.message = format!("{}: trimming", target.pid);
        Action::Trim(target)
    }

    fn open_help(&mut self) {
        (self.mode, self.scroll, self.detail) = (Mode::Help, 0, None);
    }

    fn open_detail(&mut self) -> Action {
        let Some(target) = self.target() else {
            return Action::None;
        };
        (self.mode, self.scroll) = (Mode::Detail, 0);
        self.detail = Some((target, None));
        Action::Detail(target)
    }

    /// The selected process. The selection stays with it.
    fn target(&mut self) -> Option<Target> {
        let place = self.selection()?;
        let target = self.visible().get(place).map(|row| Target {
            pid: row.pid,
            start_ticks: row.start_ticks,
        })?;
        self.selected = Some(target.pid);
        Some(target)
    }

    /// Shows the text, unless another process or none is shown by now.
    pub fn show_detail(&mut self, of: Target, text: String) {
        if let Some((target, shown)) = self.detail.as_mut()
            && *target == of
        {
            *shown = Some(text);
        }
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
