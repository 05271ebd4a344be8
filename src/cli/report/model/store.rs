//! All processes of all files, within a fixed budget of memory.

use std::collections::HashMap;

use flarena_shared::sites::{Owner, Record};

use super::duplicates::{self, Duplicate};
use super::order::Order;
use super::process::{Notice, Process};
use super::sample::{Sample, NO_NAME};
use super::series::Series;
use super::site_history::History;

/// Points of one stage. More are joined: a chart has no room, a slope no need for them.
const MOST_POINTS_PER_STAGE: usize = 1024;
const FEWEST_POINTS_PER_STAGE: usize = 32;
/// Points of all processes: with about 140 bytes each, the bulk of the memory taken.
const MOST_POINTS: usize = 1_200_000;
/// Processes whose allocation sites are kept: they take the most.
const MOST_WITH_SITES: usize = 1000;
/// A trainer that is started anew for each of 1000 rounds on 100 sites makes 100 000.
const MOST_PROCESSES: usize = 120_000;

/// Where a sample stands.
pub struct Place<'a> {
    /// The log, without the number that rotation gives it.
    pub log: &'a str,
    /// The first time in this file: orders the parts of a rotated log, in microseconds.
    pub epoch: u64,
    pub line: u64,
}

#[derive(Default)]
pub struct Store {
    processes: Vec<Process>,
    /// What the records of allocation sites say, by process.
    held: HashMap<Owner, History>,
    by_pid: HashMap<(u32, Option<u64>), Vec<usize>>,
    by_log: HashMap<(String, String, String), usize>,
    points: usize,
    /// How often the points of a stage were halved to make room.
    halvings: u32,
}

impl Store {
    fn most_per_stage(&self) -> usize {
        (MOST_POINTS_PER_STAGE >> self.halvings).max(FEWEST_POINTS_PER_STAGE)
    }

    pub fn add(&mut self, sample: &Sample, place: &Place) -> Option<Notice> {
        let Some(index) = self.process_of(sample, place) else {
            return Some(Notice::TooManyProcesses);
        };
        let order = match sample.seq {
            Some(seq) => Order { epoch: 0, seq },
            None => Order {
                epoch: place.epoch,
                seq: place.line,
            },
        };
        let most = self.most_per_stage();
        let notice = self.processes[index].add(sample, order, most, &mut self.points);
        if self.points > MOST_POINTS && most > FEWEST_POINTS_PER_STAGE {
            self.tighten();
        }
        notice
    }

    /// A record of allocation sites; those of too many processes are left out.
    pub fn add_sites(&mut self, record: Record) {
        let (Record::Stack { owner, .. } | Record::Sites { owner, .. }) = &record;
        if self.held.contains_key(owner) || self.held.len() < MOST_WITH_SITES {
            self.held.entry(*owner).or_default().add(record);
        }
    }

    fn process_of(&mut self, sample: &Sample, place: &Place) -> Option<usize> {
        let known = match sample.pid {
            Some(pid) => self.known_pid(pid, sample),
            None => self.by_log.get(&log_key(sample, place)).copied(),
        };
        if known.is_some() || self.processes.len() >= MOST_PROCESSES {
            return known;
        }
        let index = self.processes.len();
        let log = sample.pid.is_none().then(|| place.log.to_owned());
        self.processes.push(Process::new(sample, log));
        if let Some(pid) = sample.pid {
            let one_pid = self.by_pid.entry((pid, sample.start)).or_default();
            one_pid.push(index);
        } else {
            self.by_log.insert(log_key(sample, place), index);
        }
        Some(index)
    }

    /// Two machines can use one pid, even started at the same tick: then the sites differ.
    fn known_pid(&self, pid: u32, sample: &Sample) -> Option<usize> {
        let candidates = self.by_pid.get(&(pid, sample.start))?;
        let fits = |index: &&usize| {
            let Process { sites, proc, .. } = &self.processes[**index];
            let is_its = |site: &str| sites.iter().any(|known| known == site);
            sites.is_empty() || proc == "SIM" || sample.site.as_deref().is_none_or(is_its)
        };
        candidates.iter().rev().find(fits).copied()
    }

    fn tighten(&mut self) {
        self.halvings += 1;
        let most = self.most_per_stage();
        self.points = 0;
        for series in series_of(&mut self.processes) {
            series.compact(most);
            self.points += series.len();
        }
    }

    /// The processes, each once, each series in its order; and what was told twice.
    pub fn finish(mut self) -> (Vec<Process>, Vec<Duplicate>) {
        series_of(&mut self.processes).for_each(Series::finish);
        for process in &mut self.processes {
            if let (Some(pid), Some(start)) = (process.pid, process.start) {
                process.held = self.held.remove(&Owner { pid, start }).unwrap_or_default();
            }
        }
        let duplicates = duplicates::take_out(&mut self.processes);
        (self.processes, duplicates)
    }
}

fn series_of(processes: &mut [Process]) -> impl Iterator<Item = &mut Series> {
    let stages = processes.iter_mut().flat_map(|process| &mut process.stages);
    stages.map(|(_, series)| series)
}

fn log_key(sample: &Sample, place: &Place) -> (String, String, String) {
    let site = sample.site.as_deref().unwrap_or(NO_NAME);
    let [log, proc, site] = [place.log, &sample.proc, site].map(str::to_owned);
    (log, proc, site)
}
