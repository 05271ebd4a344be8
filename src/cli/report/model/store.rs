//! All processes of all files, within a fixed memory budget.
//!
//! If a stage, or all stages together, have too many points, neighbouring points are joined.

use std::collections::HashMap;

use flarena_shared::marker::Marker;
use flarena_shared::sites::Record;

use super::join::{join, remove_copies};
use super::order::Order;
use super::process::{begins_program, Process};
use super::series::Series;

/// Charts and slopes need no more points.
const MAX_POINTS_PER_STAGE: usize = 1024;
/// Points are never joined below this number.
const MIN_POINTS_PER_STAGE: usize = 32;
/// Points of all processes. At about 220 bytes each they take most of the memory.
const MAX_POINTS: usize = 1_000_000;
/// The points are counted after so many markers.
const MARKERS_PER_COUNT: usize = 1 << 16;
/// Processes whose allocation sites are kept.
const MAX_PROCESSES_WITH_SITES: usize = 1000;
/// A trainer that is restarted for each of 1000 rounds on 100 sites makes 100 000 processes.
const MAX_PROCESSES: usize = 110_000;

/// Why a marker was left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Notice {
    Repeated,
    TooManyProcesses,
}

/// The markers with one identity are of one process, or of several that `Store::known` tells apart.
#[derive(PartialEq, Eq, Hash)]
enum Identity {
    Process(u32, Option<u64>),
    /// Lines without a pid: their log, name of the process and site.
    Log(String, String, Option<String>),
}

#[derive(Default)]
pub struct Store {
    processes: Vec<Process>,
    /// The places of the programs with one identity, in the order of their begins.
    programs: HashMap<Identity, Vec<usize>>,
    markers: usize,
    /// How often the limit of points per stage was halved.
    halvings: u32,
    processes_with_sites: usize,
}

impl Store {
    /// Adds a marker. `log` is the file that it was read from, without the number that rotation adds.
    pub fn add(&mut self, marker: &Marker, log: &str, order: Order) -> Option<Notice> {
        let identity = match marker.pid {
            Some(pid) => Identity::Process(pid, marker.start),
            None => Identity::Log(log.to_owned(), marker.proc.clone(), marker.site.clone()),
        };
        let known = self.known(&identity, marker);
        let place = known.unwrap_or(self.processes.len());
        if place >= MAX_PROCESSES {
            return Some(Notice::TooManyProcesses);
        }
        if known.is_none() {
            self.processes.push(Process::new(marker, log));
        }
        let max_points = self.max_points_per_stage();
        let is_new = self.processes[place].add(marker, order, max_points);
        if known.is_none() || is_new && begins_program(marker) {
            let programs = self.programs.entry(identity).or_default();
            if known.is_some() {
                programs.retain(|one| *one != place);
            }
            let begin = |place: usize| begin(&self.processes[place]);
            let next = programs.partition_point(|one| begin(*one) <= begin(place));
            programs.insert(next, place);
        }
        self.markers += 1;
        if self.markers.is_multiple_of(MARKERS_PER_COUNT) {
            self.limit_points();
        }
        (!is_new).then_some(Notice::Repeated)
    }

    /// Adds a record of allocation sites to the program that its process executes so far: records follow markers, and an exec
    /// numbers its sites from 1 again.
    pub fn add_sites(&mut self, record: Record) {
        let (Record::Stack { owner, .. } | Record::Sites { owner, .. }) = &record;
        let identity = Identity::Process(owner.pid, Some(owner.start));
        let mut programs = self.programs.get(&identity).into_iter().flatten().rev();
        let Some(latest) = programs.find(|one| self.processes[**one].boot == owner.boot) else {
            return;
        };
        let history = &mut self.processes[*latest].allocation_sites;
        let is_new = history.is_empty();
        if !is_new || self.processes_with_sites < MAX_PROCESSES_WITH_SITES {
            history.add(record);
            self.processes_with_sites += usize::from(is_new);
        }
    }

    /// The program that wrote the marker. One program may serve many sites. Processes on two machines can have the same pid
    /// and start time: then their boots, hosts or sites differ. After an exec another program has the same pid and start time.
    fn known(&self, identity: &Identity, marker: &Marker) -> Option<usize> {
        let programs = self.programs.get(identity)?;
        let process = |place: &&usize| &self.processes[**place];
        let is_here = |place: &&usize| process(place).is_on_machine_of(marker);
        let newest = programs.iter().rev().find(is_here);
        let serves = |place: &&usize| {
            let sites = &process(place).sites;
            let is_named = |site: &String| sites.contains(site);
            sites.is_empty() && Some(*place) == newest || marker.site.as_ref().is_none_or(is_named)
        };
        let is_new_there = |place: &&usize| {
            let seen = &process(place).seen_numbers;
            marker.seq.is_some_and(|seq| !seen.contains(seq))
        };
        let t = marker.t.unwrap_or(f64::INFINITY);
        let begun = |t| programs.partition_point(|one| begin(&self.processes[*one]) <= t);
        let (before, after) = programs.split_at(begun(t));
        let (near, far) = match begins_program(marker) {
            // The marker was read before, or only later ones were.
            true => (
                &before[begun(t.next_down())..],
                &before[..begun(f64::NEG_INFINITY)],
            ),
            // A clock that was set back leaves no program that was loaded before the marker.
            false => (before, after),
        };
        let latest_first = near.iter().rev().chain(far.iter().rev());
        let mut candidates = latest_first.filter(|place| process(place).may_have_written(marker));
        let served = candidates.clone().find(serves);
        served.or_else(|| candidates.find(is_new_there)).copied()
    }

    fn max_points_per_stage(&self) -> usize {
        (MAX_POINTS_PER_STAGE >> self.halvings).max(MIN_POINTS_PER_STAGE)
    }

    fn limit_points(&mut self) {
        let points = self.processes.iter().flat_map(|one| &one.stages);
        let points: usize = points.map(Series::len).sum();
        if points > MAX_POINTS && self.max_points_per_stage() > MIN_POINTS_PER_STAGE {
            self.halvings += 1;
            let max_points = self.max_points_per_stage();
            let stages = self.processes.iter_mut().flat_map(|one| &mut one.stages);
            stages.for_each(|series| series.compact(max_points));
        }
    }

    /// Sorts every series, joins processes that follow each other, and removes the logs of processes that also wrote markers.
    /// These are the second list.
    pub fn finish(mut self) -> (Vec<Process>, Vec<Process>) {
        self.processes.iter_mut().for_each(Process::finish);
        let copies = remove_copies(&mut self.processes);
        (join(self.processes, MAX_POINTS_PER_STAGE), copies)
    }
}

/// A program whose marker `load` was not read comes before the others.
fn begin(process: &Process) -> f64 {
    process.loaded.unwrap_or(f64::NEG_INFINITY)
}
