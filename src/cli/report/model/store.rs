//! All processes of all files, within a fixed budget of memory.

use std::collections::HashMap;

use flarena_shared::sites::{Owner, Record};

use super::duplicates::{self, Duplicate};
use super::held::History;
use super::order::Order;
use super::process::{Notice, Process};
use super::sample::Sample;

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

#[cfg(test)]
impl Place<'_> {
    pub const ANY: Self = Place {
        log: "x",
        epoch: 0,
        line: 1,
    };
}

pub struct Store {
    pub processes: Vec<Process>,
    /// What the records of allocation sites say, by process.
    held: HashMap<Owner, History>,
    by_pid: HashMap<(u32, Option<u64>), Vec<usize>>,
    by_log: HashMap<(String, String, String), usize>,
    points: usize,
    most_per_stage: usize,
}

impl Default for Store {
    fn default() -> Self {
        Store {
            processes: Vec::new(),
            held: HashMap::new(),
            by_pid: HashMap::new(),
            by_log: HashMap::new(),
            points: 0,
            most_per_stage: MOST_POINTS_PER_STAGE,
        }
    }
}

impl Store {
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
        let process = &mut self.processes[index];
        let notice = process.add(sample, order, self.most_per_stage, &mut self.points);
        if self.points > MOST_POINTS && self.most_per_stage > FEWEST_POINTS_PER_STAGE {
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
        match sample.pid {
            Some(pid) => self
                .by_pid
                .entry((pid, sample.start))
                .or_default()
                .push(index),
            None => drop(self.by_log.insert(log_key(sample, place), index)),
        }
        Some(index)
    }

    /// Two machines can use one pid, even started at the same tick: then the sites differ.
    fn known_pid(&self, pid: u32, sample: &Sample) -> Option<usize> {
        let candidates = self.by_pid.get(&(pid, sample.start))?;
        let fits = |&&index: &&usize| {
            let process = &self.processes[index];
            let Some(site) = sample.site.as_deref() else {
                return true;
            };
            process.sites.is_empty()
                || process.sites.iter().any(|known| known == site)
                || process.proc == "SIM"
        };
        candidates.iter().rev().find(fits).copied()
    }

    fn tighten(&mut self) {
        self.most_per_stage = (self.most_per_stage / 2).max(FEWEST_POINTS_PER_STAGE);
        let all = self
            .processes
            .iter_mut()
            .flat_map(|process| &mut process.stages);
        self.points = all
            .map(|(_, series)| {
                series.compact(self.most_per_stage);
                series.len()
            })
            .sum();
    }

    /// The processes, each once, each series in its order; and what was told twice.
    pub fn finish(mut self) -> (Vec<Process>, Vec<Duplicate>) {
        let all = self
            .processes
            .iter_mut()
            .flat_map(|process| &mut process.stages);
        all.for_each(|(_, series)| series.finish());
        for process in &mut self.processes {
            let (Some(pid), Some(start)) = (process.pid, process.start) else {
                continue;
            };
            if let Some(held) = self.held.remove(&Owner { pid, start }) {
                process.held = held;
            }
        }
        let duplicates = duplicates::take_out(&mut self.processes);
        (self.processes, duplicates)
    }
}

fn log_key(sample: &Sample, place: &Place) -> (String, String, String) {
    let site = sample.site.as_deref().unwrap_or("-");
    (
        place.log.to_owned(),
        sample.proc.clone().into_owned(),
        site.to_owned(),
    )
}
