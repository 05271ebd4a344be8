//! One process of `top`: what its allocator tells, else what the kernel tells.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use serde::Serialize;

use crate::control::{self, AskError, Request, Stats};
use crate::output::plain;
use crate::proc::{Cgroup, Process};
use crate::units::bytes_or_dash;

/// A process that is too busy to answer is shown with what the kernel knows.
const PATIENCE: Duration = Duration::from_secs(2);

/// A few at a time: a host may run hundreds, and some may keep us waiting.
const WORKERS: usize = 8;

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Row {
    pub pid: i32,
    #[serde(skip)]
    pub start_ticks: u64,
    pub comm: String,
    pub site: Option<String>,
    pub proc: Option<String>,
    pub role: Option<String>,
    pub stage: Option<String>,
    pub round: Option<i64>,
    pub allocator: Option<String>,
    pub live_bytes: Option<u64>,
    pub cached_bytes: Option<u64>,
    pub rss_bytes: Option<u64>,
    pub limit_bytes: Option<u64>,
    /// Why the allocator told nothing.
    pub note: Option<String>,
}

pub const HEADINGS: [&str; 12] = [
    "PID",
    "SITE",
    "PROC",
    "ROLE",
    "ROUND",
    "STAGE",
    "LIVE",
    "CACHED",
    "RSS",
    "LIMIT",
    "ALLOCATOR",
    "COMMAND",
];
/// Numbers.
pub const RIGHT_ALIGNED: [usize; 6] = [0, 4, 6, 7, 8, 9];

impl Row {
    pub fn cells(&self) -> [String; 12] {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
        [
            self.pid.to_string(),
            text(&self.site),
            text(&self.proc),
            text(&self.role),
            self.round.map_or("-".to_owned(), |round| round.to_string()),
            text(&self.stage),
            bytes_or_dash(self.live_bytes),
            bytes_or_dash(self.cached_bytes),
            bytes_or_dash(self.rss_bytes),
            bytes_or_dash(self.limit_bytes),
            text(&self.allocator),
            self.comm.clone(),
        ]
    }

    /// Whether a text stands somewhere in the row, in any case.
    pub fn holds(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        self.cells()
            .iter()
            .any(|cell| cell.to_lowercase().contains(&text))
    }

    fn of(process: &Process) -> Self {
        let mut row = Self {
            pid: process.pid,
            start_ticks: process.start_ticks,
            comm: plain(&process.comm()),
            ..Self::default()
        };
        match control::ask(process, Request::Stats, PATIENCE) {
            Ok(stats) => row.take(&stats),
            Err(error) => row.take_from_kernel(process, &error),
        }
        row
    }

    fn take(&mut self, stats: &Stats) {
        let text = |name| stats.text(name).map(plain);
        self.site = text("site");
        self.proc = text("proc");
        self.role = text("role");
        self.stage = text("stage");
        self.allocator = text("allocator");
        self.round = stats.signed("round");
        self.live_bytes = stats.number("live_bytes");
        self.cached_bytes = stats.cached_bytes();
        self.rss_bytes = stats.number("rss_bytes");
        self.limit_bytes = stats
            .number("cgroup_limit_bytes")
            .filter(|limit| *limit > 0);
    }

    fn take_from_kernel(&mut self, process: &Process, error: &AskError) {
        self.rss_bytes = process.status().ok().map(|status| status.rss_bytes);
        self.limit_bytes = Cgroup::of(process).and_then(|cgroup| cgroup.limit_bytes);
        self.note = Some(error.to_string());
    }
}

/// Looks at every process. Those that end meanwhile are left out.
pub fn collect(silent_too: bool) -> Vec<Row> {
    let processes = Mutex::new(control::shimmed(silent_too).into_iter());
    let rows = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(process) = processes.lock().ok().and_then(|mut all| all.next()) {
                    let row = Row::of(&process);
                    let is_alive = row.rss_bytes.is_some();
                    if let (true, Ok(mut rows)) = (is_alive, rows.lock()) {
                        rows.push(row);
                    }
                }
            });
        }
    });
    rows.into_inner().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_process_tells_fills_the_row() {
        let stats = r#"{"site":"site-1","proc":"TR","round":4,"live_bytes":1,"retained_bytes":2,
            "recycled_bytes":3,"rss_bytes":9,"cgroup_limit_bytes":0}"#;
        let mut row = Row {
            pid: 7,
            ..Row::default()
        };
        row.take(&Stats::parse(stats).unwrap());
        assert_eq!(row.cells()[..5], ["7", "site-1", "TR", "-", "4"]);
        assert_eq!((row.cached_bytes, row.limit_bytes), (Some(5), None));
    }

    #[test]
    fn a_filter_looks_everywhere_and_ignores_case() {
        let row = Row {
            comm: "python3".into(),
            site: Some("Site-1".into()),
            ..Row::default()
        };
        assert!(row.holds("SITE") && row.holds("PYTH") && row.holds(""));
        assert!(!row.holds("jemalloc"));
    }

    #[test]
    fn every_heading_has_a_cell() {
        assert_eq!(Row::default().cells().len(), HEADINGS.len());
    }
}
