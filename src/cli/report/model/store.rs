//! All processes of all files, within a fixed memory budget.
//!
//! If a stage, or all stages together, have too many points, neighbouring points are joined. A log
//! of a process that also wrote markers is recognized at the end and removed.

use std::collections::HashMap;

use flarena_shared::sites::{Owner, Record};
use flarena_shared::stages::Stage;

use super::chain;
use super::exec;
use super::order::Order;
use super::process::{Notice, Process, Program};
use super::sample::{Sample, Size, NO_NAME};
use super::series::Point;
use super::site_history::SiteHistory;

/// Charts and slopes need no more points.
const MAX_POINTS_PER_STAGE: usize = 1024;
/// Points are never joined below this number.
const MIN_POINTS_PER_STAGE: usize = 32;
/// Points of all processes. At about 140 bytes each they take most of the memory.
const MAX_POINTS: usize = 1_200_000;
/// Processes whose allocation sites are kept.
const MAX_PROCESSES_WITH_SITES: usize = 1000;
/// A trainer that is restarted for each of 1000 rounds on 100 sites makes 100 000 processes.
const MAX_PROCESSES: usize = 120_000;

/// The line that a sample was read from.
pub struct SourceLine<'a> {
    /// The log, without the number that rotation adds.
    pub log: &'a str,
    /// The first time in this file, in microseconds. It orders the parts of a rotated log.
    pub epoch: u64,
    pub line: u64,
}

#[derive(Default)]
pub struct Store {
    processes: Vec<Process>,
    /// By process and program: an exec numbers its sites from 1 again.
    allocation_sites: HashMap<(Owner, Program), SiteHistory>,
    by_pid: HashMap<(u32, Option<u64>), Vec<usize>>,
    by_log: HashMap<(String, String, String), usize>,
    points: usize,
    /// How often the limit of points per stage was halved.
    halvings: u32,
}

impl Store {
    fn max_points_per_stage(&self) -> usize {
        (MAX_POINTS_PER_STAGE >> self.halvings).max(MIN_POINTS_PER_STAGE)
    }

    pub fn add(&mut self, sample: &Sample, source: &SourceLine) -> Option<Notice> {
        let known = match sample.pid {
            Some(pid) => self.known_pid(pid, sample),
            None => self.by_log.get(&log_key(sample, source)).copied(),
        };
        if known.is_none() && self.processes.len() >= MAX_PROCESSES {
            return Some(Notice::TooManyProcesses);
        }
        let index = known.unwrap_or_else(|| self.new_process(sample, source));
        let order = match sample.seq {
            Some(seq) => Order { epoch: 0, seq },
            None => Order {
                epoch: source.epoch,
                seq: source.line,
            },
        };
        let max_points = self.max_points_per_stage();
        let notice = self.processes[index].add(sample, order, max_points, &mut self.points);
        if self.points > MAX_POINTS && max_points > MIN_POINTS_PER_STAGE {
            self.halve_points();
        }
        notice
    }

    /// Adds a record of allocation sites, unless the limit of processes with sites is reached.
    pub fn add_sites(&mut self, record: Record) {
        let (Record::Stack { owner, .. } | Record::Sites { owner, .. }) = &record;
        let key = (*owner, self.last_program(owner));
        let histories = &mut self.allocation_sites;
        if histories.contains_key(&key) || histories.len() < MAX_PROCESSES_WITH_SITES {
            histories.entry(key).or_default().add(record);
        }
    }

    /// The program that a process executes so far. Its records follow its markers.
    fn last_program(&self, owner: &Owner) -> Program {
        let known = self.by_pid.get(&(owner.pid, Some(owner.start)));
        let known = known
            .into_iter()
            .flatten()
            .map(|index| &self.processes[*index]);
        let programs = known.filter(|process| process.boot_key() == owner.boot);
        programs.map(Process::program_key).max()?
    }

    fn new_process(&mut self, sample: &Sample, source: &SourceLine) -> usize {
        let index = self.processes.len();
        let log = sample.pid.is_none().then(|| source.log.to_owned());
        self.processes.push(Process::new(sample, log));
        match sample.pid {
            Some(pid) => {
                let same = self.by_pid.entry((pid, sample.start)).or_default();
                same.push(index);
            }
            None => {
                self.by_log.insert(log_key(sample, source), index);
            }
        }
        index
    }

    /// The program of this pid that wrote the sample. One program may serve many sites. Processes on two machines
    /// can have the same pid and start time: then their boots, hosts or sites differ. Only a program's first marker has
    /// the host. After an exec another program has the same pid and start time, and its sequence numbers begin at 0 again.
    fn known_pid(&self, pid: u32, sample: &Sample) -> Option<usize> {
        let process = |index: &usize| &self.processes[*index];
        let differ = |one: &Option<String>, other: &Option<String>| {
            one.as_ref()
                .zip(other.as_ref())
                .is_some_and(|(one, other)| one != other)
        };
        let is_elsewhere = |index: &usize| {
            let known = process(index);
            differ(&known.host, &sample.host) || differ(&known.boot, &sample.boot)
        };
        let candidates = self.by_pid.get(&(pid, sample.start)).into_iter().flatten();
        let candidates: Vec<usize> = candidates
            .copied()
            .filter(|one| !is_elsewhere(one))
            .collect();
        let newest = candidates.last();
        let serves = |index: &usize| {
            let sites = &process(index).sites;
            let is_named = |site: &String| sites.contains(site);
            sites.is_empty() && Some(index) == newest || sample.site.as_ref().is_none_or(is_named)
        };
        let is_new_there =
            |index: &usize| sample.seq.is_some_and(|seq| !process(index).has_seen(seq));
        let t = sample.t.unwrap_or(f64::INFINITY);
        let is_loaded = |index: &usize| match process(index).loaded {
            Some(loaded) if sample.begins_program() => loaded == t,
            Some(loaded) => loaded <= t,
            None => !sample.begins_program() || t <= process(index).first_time,
        };
        let latest = |is_wanted: &dyn Fn(&usize) -> bool| {
            let mut programs = candidates.iter().rev().copied().filter(is_wanted);
            match sample.begins_program() {
                true => programs.find(is_loaded),
                // A clock that was set back leaves no program that was loaded before the sample.
                false => programs.clone().find(is_loaded).or(programs.next()),
            }
        };
        latest(&serves).or_else(|| latest(&is_new_there))
    }

    fn halve_points(&mut self) {
        self.halvings += 1;
        let max_points = self.max_points_per_stage();
        self.points = 0;
        let stages = self.processes.iter_mut().flat_map(|one| &mut one.stages);
        for (_, series) in stages {
            series.compact(max_points);
            self.points += series.len();
        }
    }

    /// Sorts every series, and removes the logs of processes that also wrote markers. They are the second list.
    pub fn finish(mut self) -> (Vec<Process>, Vec<Process>) {
        for process in &mut self.processes {
            process.finish();
            if let (Some(pid), Some(start)) = (process.pid, process.start) {
                let boot = process.boot_key();
                let key = (Owner { pid, start, boot }, process.program_key());
                process.allocation_sites = self.allocation_sites.remove(&key).unwrap_or_default();
            }
        }
        let copies = remove_copies(&mut self.processes);
        exec::join(&mut self.processes);
        (chain::join(self.processes), copies)
    }
}

fn log_key(sample: &Sample, source: &SourceLine) -> (String, String, String) {
    let site = sample.site.as_deref().unwrap_or(NO_NAME);
    let [log, proc, site] = [source.log, &sample.proc, site].map(str::to_owned);
    (log, proc, site)
}

/// NVFlare's process name for a user of its Client API: the trainer or the job's process.
const CLIENT_API: &str = "CA";
/// NVFlare's name for the stage `receive`.
const NVFLARE_RECEIVE: &str = "recv";
/// NVFlare and flarena measure RSS at almost the same moment.
const RSS_TOLERANCE: f64 = 0.05;
const SAME_MOMENT_SECONDS: f64 = 1.0;

/// NVFlare writes `[RSS]` lines into `log.txt` and again into `log.json`, the lines of a trainer into the
/// log of its job, and lines of its own beside flarena's. The lines have no pid, so their contents are
/// compared with those of the markers and of the other logs.
fn remove_copies(processes: &mut Vec<Process>) -> Vec<Process> {
    let numbered = processes.iter().enumerate();
    let is_copy =
        numbered.map(|(index, log)| log.pid.is_none() && is_copied(log, index, processes));
    let mut is_copy = is_copy.collect::<Vec<bool>>().into_iter();
    let copies = processes.extract_if(.., |_| is_copy.next().unwrap_or(false));
    copies.collect()
}

/// True if most points of the log are points of a process with markers, or of another log that is kept.
fn is_copied(log: &Process, index: usize, all: &[Process]) -> bool {
    // flarena's lines tell more than NVFlare's own. Of two equal logs the first one is kept.
    let rank = |process: &Process, index| (process.proc == CLIENT_API, index);
    let candidates = all.iter().enumerate().filter(|(at, other)| {
        let is_kept = other.pid.is_some() || rank(other, *at) < rank(log, index);
        is_kept && may_be_same(log, other)
    });
    let candidates: Vec<&Process> = candidates.map(|(_, other)| other).collect();
    let is_known = |(stage, point): &(&str, &Point)| {
        candidates
            .iter()
            .any(|other| has_point_like(other, stage, point))
    };
    let stages = log.stages.iter();
    let points =
        stages.flat_map(|(name, series)| series.points().iter().map(|point| (&**name, point)));
    2 * points.filter(is_known).count() > log.points().count()
}

fn may_be_same(log: &Process, other: &Process) -> bool {
    let is_client = log.proc == CLIENT_API && matches!(&*other.proc, "TR" | "CJ");
    let has_same_name = log.proc == other.proc || is_client;
    has_same_name && log.sites.iter().all(|site| other.sites.contains(site))
}

fn has_point_like(process: &Process, wanted_stage: &str, wanted: &Point) -> bool {
    let stage = match wanted_stage {
        NVFLARE_RECEIVE => Stage::Receive.name(),
        other => other,
    };
    let rss = wanted.sizes[Size::Rss];
    let matches = |point: &Point| {
        // A marker without a round takes the round of its process, which a log may not show.
        let has_same_round = point.round == wanted.round || wanted.round.is_nan();
        // Two logs without pids may be those of two runs of the same job.
        let is_same_moment =
            process.pid.is_some() || (point.t - wanted.t).abs() <= SAME_MOMENT_SECONDS;
        let has_same_size = (point.sizes[Size::Rss] - rss).abs() <= RSS_TOLERANCE * rss;
        has_same_round && is_same_moment && has_same_size
    };
    let series = process.series(stage).or(process.series(wanted_stage));
    series.is_some_and(|series| series.points().iter().any(matches))
}
