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
use super::series::{Point, Series};
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
        let Some(index) = self.process_of(sample, source) else {
            return Some(Notice::TooManyProcesses);
        };
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
        notice.or_else(|| {
            self.is_ambiguous(index, sample)
                .then_some(Notice::Ambiguous)
        })
    }

    /// True if processes of two machines have this pid and start, and the marker does not tell which of them wrote it.
    fn is_ambiguous(&self, index: usize, sample: &Sample) -> bool {
        let Some(pid) = sample
            .pid
            .filter(|_| sample.host.is_none() && sample.boot.is_none())
        else {
            return false;
        };
        let same = self.by_pid.get(&(pid, sample.start)).into_iter().flatten();
        if same.clone().count() < 2 {
            return false;
        }
        let (mine, site) = (&self.processes[index].host, &sample.site);
        same.map(|other| &self.processes[*other]).any(|other| {
            let serves = site.as_ref().is_none_or(|site| other.sites.contains(site));
            let is_new = sample.seq.is_some_and(|seq| !other.has_seen(seq));
            serves && is_new && mine.is_some() && other.host.is_some() && other.host != *mine
        })
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

    fn process_of(&mut self, sample: &Sample, source: &SourceLine) -> Option<usize> {
        let known = match sample.pid {
            Some(pid) => self.known_pid(pid, sample),
            None => self.by_log.get(&log_key(sample, source)).copied(),
        };
        if known.is_some() || self.processes.len() >= MAX_PROCESSES {
            return known;
        }
        let index = self.processes.len();
        let log = sample.pid.is_none().then(|| source.log.to_owned());
        self.processes.push(Process::new(sample, log));
        if let Some(pid) = sample.pid {
            let one_pid = self.by_pid.entry((pid, sample.start)).or_default();
            one_pid.push(index);
        } else {
            self.by_log.insert(log_key(sample, source), index);
        }
        Some(index)
    }

    /// The program of this pid that wrote the sample. One program may serve many sites. Processes on two machines
    /// can have the same pid and start time: then their hosts or sites differ, and their sequence numbers repeat.
    /// Only a program's first marker has the host. After an exec another program has the same pid and start time,
    /// and its sequence numbers begin at 0 again.
    fn known_pid(&self, pid: u32, sample: &Sample) -> Option<usize> {
        let process = |index: &usize| &self.processes[*index];
        let is_elsewhere = |index: &usize| {
            let hosts = process(index).host.as_deref().zip(sample.host.as_deref());
            let boots = process(index).boot.as_deref().zip(sample.boot.as_deref());
            let differ =
                |pair: Option<(&str, &str)>| pair.is_some_and(|(known, other)| known != other);
            differ(hosts) || differ(boots)
        };
        let candidates = self.by_pid.get(&(pid, sample.start))?.iter().copied();
        let candidates: Vec<usize> = candidates.filter(|index| !is_elsewhere(index)).collect();
        let newest = candidates.last();
        let serves = |index: &usize| {
            let sites = &process(index).sites;
            let is_named = |site: &str| sites.iter().any(|known| known == site);
            sites.is_empty() && Some(index) == newest || sample.site.as_deref().is_none_or(is_named)
        };
        let is_new_there = |index: &usize| {
            let seq = sample.seq;
            seq.is_some_and(|seq| !process(index).has_seen(seq))
        };
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
        let mut hosts = candidates
            .iter()
            .filter_map(|index| process(index).host.as_deref());
        let first_host = hosts.next();
        if hosts.any(|host| Some(host) != first_host)
            && let Some(index) = latest(&|index| serves(index) && is_new_there(index))
        {
            return Some(index);
        }
        latest(&serves).or_else(|| latest(&is_new_there))
    }

    fn halve_points(&mut self) {
        self.halvings += 1;
        let max_points = self.max_points_per_stage();
        self.points = 0;
        for series in series_of(&mut self.processes) {
            series.compact(max_points);
            self.points += series.len();
        }
    }

    /// Sorts every series, and removes the logs of processes that also wrote markers.
    pub fn finish(mut self) -> (Vec<Process>, Vec<DuplicateLog>) {
        self.processes.iter_mut().for_each(Process::finish);
        for process in &mut self.processes {
            if let (Some(pid), Some(start)) = (process.pid, process.start) {
                let boot = process.boot_key();
                let key = (Owner { pid, start, boot }, process.program_key());
                process.allocation_sites = self.allocation_sites.remove(&key).unwrap_or_default();
            }
        }
        let duplicates = remove_duplicates(&mut self.processes);
        exec::join(&mut self.processes);
        (chain::join(self.processes), duplicates)
    }
}

fn series_of(processes: &mut [Process]) -> impl Iterator<Item = &mut Series> {
    let stages = processes.iter_mut().flat_map(|process| &mut process.stages);
    stages.map(|(_, series)| series)
}

fn log_key(sample: &Sample, source: &SourceLine) -> (String, String, String) {
    let site = sample.site.as_deref().unwrap_or(NO_NAME);
    let [log, proc, site] = [source.log, &sample.proc, site].map(str::to_owned);
    (log, proc, site)
}

/// A log whose process also wrote markers.
pub struct DuplicateLog {
    pub log: String,
    pub markers: u64,
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
fn remove_duplicates(processes: &mut Vec<Process>) -> Vec<DuplicateLog> {
    let numbered = processes.iter().enumerate();
    let is_copy =
        numbered.map(|(index, log)| log.pid.is_none() && is_copied(log, index, processes));
    let copies: Vec<bool> = is_copy.collect();
    let mut copies = copies.into_iter();
    let removed = processes.extract_if(.., |_| copies.next().unwrap_or(false));
    let duplicate = |process: Process| DuplicateLog {
        log: process.log.unwrap_or_default(),
        markers: process.markers,
    };
    removed.map(duplicate).collect()
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
    let (mut matched, mut points) = (0, 0);
    for (stage, series) in &log.stages {
        for point in series.points() {
            let matches = |other: &&Process| has_point_like(other, stage, point);
            matched += usize::from(candidates.iter().any(matches));
            points += 1;
        }
    }
    2 * matched > points
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
