//! One process of `top`, as its allocator reports it, else as the kernel does.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;

use super::{detail, table};
use crate::control::{self, Request, Stats};
use crate::output::plain;
use crate::proc::{user_name, Cgroup, Process};

/// A process that does not answer in this time is shown with the kernel's numbers.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Processes asked at once. A host may run hundreds, and some answer slowly.
const WORKERS: usize = 8;

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Row {
    #[serde(flatten)]
    pub process: Process,
    pub user: String,
    /// The name that `flarena run --name` gave it.
    pub name: Option<String>,
    pub comm: String,
    /// The script or module of a Python program: its name, never its arguments.
    pub script: Option<String>,
    pub site: Option<String>,
    pub proc: Option<String>,
    pub role: Option<String>,
    pub stage: Option<String>,
    pub round: Option<i64>,
    pub allocator: Option<String>,
    pub live_bytes: Option<u64>,
    /// Pages of freed large blocks, kept for reuse.
    pub cached_bytes: Option<u64>,
    /// Free memory in the allocator.
    pub retained_bytes: Option<u64>,
    pub rss_bytes: Option<u64>,
    /// The change of `rss_bytes` over the last two minutes that `top` watched, or less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub growth_per_minute: Option<f64>,
    pub limit_bytes: Option<u64>,
    /// Why the allocator reported nothing.
    pub note: Option<String>,
}

impl Row {
    /// The name, the script, or the kernel's name for NVFlare's processes, which SITE and PROC describe.
    pub fn command(&self) -> &str {
        let script = self.script.as_deref().filter(|_| self.proc.is_none());
        self.name.as_deref().or(script).unwrap_or(&self.comm)
    }

    /// Whether the row contains the text, in any case.
    pub fn contains(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        let cells = table::cells(self);
        let names = [
            &self.name,
            &self.site,
            &self.stage,
            &self.script,
            &self.allocator,
            &self.role,
        ];
        let names = names.into_iter().flatten().chain([&self.comm, &self.user]);
        let mut all = cells.iter().flatten().chain(names);
        all.any(|part| part.to_lowercase().contains(&text))
    }

    fn of(process: Process) -> Self {
        let comm = process.comm();
        let status = process.status().ok();
        let user = status.as_ref().and_then(|status| status.uid).map(user);
        let reported = match control::ask(&process, Request::Stats, TIMEOUT) {
            Ok(stats) => Self::from_stats(&stats),
            Err(error) => Self {
                // A zombie holds no memory.
                rss_bytes: status.and_then(|it| (!it.is_zombie).then_some(it.rss_bytes)),
                limit_bytes: Cgroup::of(&process).and_then(|cgroup| cgroup.memory.limit_bytes),
                note: Some(error.to_string()),
                ..Self::default()
            },
        };
        Self {
            process,
            user: user.unwrap_or_default(),
            script: process.script(&comm).as_deref().map(plain),
            comm: plain(&comm),
            ..reported
        }
    }

    fn from_stats(stats: &Stats) -> Self {
        let text = |name| stats.text(name).map(plain);
        let limit = stats.number("cgroup_limit_bytes");
        Self {
            name: text("name"),
            site: text("site"),
            proc: text("proc"),
            role: text("role"),
            stage: text("stage"),
            allocator: text("allocator"),
            round: stats.value("round"),
            live_bytes: stats.number("live_bytes"),
            cached_bytes: stats.number("recycled_bytes"),
            retained_bytes: stats.number("retained_bytes"),
            rss_bytes: stats.number("rss_bytes"),
            limit_bytes: limit.filter(|limit| *limit > 0),
            ..Self::default()
        }
    }
}

/// The name of a user, looked up once.
fn user(uid: u32) -> String {
    static NAMES: LazyLock<Mutex<HashMap<u32, String>>> = LazyLock::new(Mutex::default);
    let mut names = NAMES.lock();
    let name = names.entry(uid).or_insert_with(|| plain(&user_name(uid)));
    name.clone()
}

/// The processes at one moment.
#[derive(Debug, Default)]
pub struct Sample {
    pub rows: Vec<Row>,
    /// The number of processes with the library, without a control channel, and without a row.
    pub hidden: usize,
    /// The text of the detail view, and its process.
    pub detail: Option<(Process, String)>,
}

/// Asks every process. Those that end meanwhile are left out. `all`: also those without a control channel.
/// `detail`: the process of the detail view.
pub fn collect(all: bool, detail: Option<Process>) -> Sample {
    let (mut shown, mut hidden) = control::with_library();
    if all {
        shown.append(&mut hidden);
    }
    let processes = Mutex::new(shown.into_iter());
    // The lock is not held while a process answers.
    let next = || processes.lock().next();
    let rows = Mutex::new(Vec::new());
    let ask = || {
        let asked = std::iter::from_fn(next).map(Row::of);
        let shown = asked.filter(|row| row.rss_bytes.is_some());
        shown.for_each(|row| rows.lock().push(row));
    };
    // A panic of a worker is one of the scope.
    thread::scope(|scope| [(); WORKERS].map(|()| drop(scope.spawn(ask))));
    Sample {
        rows: rows.into_inner(),
        hidden: hidden.len(),
        detail: detail.map(|process| (process, detail::text(&process))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_a_process_fills_its_row() {
        let stats = r#"{"name":"trainer-3","site":"site-1","proc":"TR","round":4,"live_bytes":1,"retained_bytes":2,
            "recycled_bytes":3,"rss_bytes":9,"cgroup_limit_bytes":0}"#;
        let row = Row::from_stats(&Stats::parse(stats).unwrap());
        let cells = table::cells(&row);
        let cells = cells.each_ref().map(|cell| cell.as_deref().unwrap_or("-"));
        assert_eq!(cells[1..5], ["site-1", "TR", "4", "-"]);
        assert_eq!(row.command(), "trainer-3");
        assert_eq!((row.cached_bytes, row.retained_bytes), (Some(3), Some(2)));
        assert_eq!(row.limit_bytes, None);
    }

    #[test]
    fn the_filter_searches_all_cells_in_any_case() {
        let row = Row {
            comm: "python3".into(),
            site: Some("Site-1".into()),
            ..Row::default()
        };
        assert!(row.contains("SITE") && row.contains("PYTH") && row.contains(""));
        assert!(!row.contains("jemalloc"));
    }

    #[test]
    fn a_python_program_is_shown_by_its_script_unless_it_is_nvflares() {
        let mut row = Row {
            comm: "python3".into(),
            ..Row::default()
        };
        assert_eq!(row.command(), "python3");
        row.script = Some("train.py".into());
        assert_eq!(row.command(), "train.py");
        row.proc = Some("TR".into());
        assert_eq!(row.command(), "python3");
        assert!(row.contains("train.py"));
    }

    #[test]
    fn a_zombie_has_no_row() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let process = Process::find(child.id() as i32).unwrap();
        while !process.status().unwrap().is_zombie {
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(Row::of(process).rss_bytes, None);
        child.wait().unwrap();
    }
}
