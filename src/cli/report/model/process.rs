//! One process: its identity, its stages, its collections and its allocation sites.

use std::collections::BTreeMap;

use flarena_shared::marker::{Marker, ShortHash};
use flarena_shared::stages::Stage;
use serde::Serialize;

use super::collections::Collections;
use super::order::{Order, SeenNumbers};
use super::series::{Point, Series};
use super::site_history::SiteHistory;
use super::sizes::Size;

/// Stages beyond this number are counted as one. A program has so many if it puts a step number
/// into their names.
const MAX_STAGES: usize = 48;
const OTHER_STAGES: &str = "(other stages)";
/// Further sites are not listed.
const MAX_SITES: usize = 1000;

/// Stands for a missing name.
pub const NO_NAME: &str = "-";

#[derive(Default)]
pub struct Process {
    pub pid: Option<u32>,
    /// Start time in clock ticks since boot. Pid and start together identify a process.
    pub start: Option<u64>,
    pub proc: String,
    /// File name of the program.
    pub program: Option<String>,
    /// By `FLARENA_NAME`.
    pub name: Option<String>,
    pub role: Option<String>,
    /// NVFlare sites, or clients of Flower. One process may serve several in turn.
    pub sites: Vec<String>,
    pub alloc: Option<String>,
    pub host: Option<String>,
    /// The beginning of NVFlare's job id.
    pub job: Option<String>,
    /// Identifies the start of the machine.
    pub boot: Option<ShortHash>,
    /// Version of flarena.
    pub version: Option<String>,
    /// Settings that differ from their defaults, separated by spaces.
    pub settings: Option<String>,
    /// The log of a process whose lines have no pid.
    pub log: Option<String>,
    pub stages: Vec<Series>,
    /// The latest limit, and the hash of its control group.
    pub cgroup_limit: Option<f64>,
    pub cgroup: Option<ShortHash>,
    /// The latest `FLARENA_MEMORY_LIMIT`, and the memory of the machine.
    pub memory_limit: Option<f64>,
    pub host_memory: Option<f64>,
    /// The latest allocation that found too little room below a limit.
    pub refused: Option<Refused>,
    pub kill_counts: KillCounts,
    /// The highest RSS, also between the markers.
    pub peak_rss: f64,
    /// The highest CPU time in the markers.
    cpu_ms: Option<u64>,
    /// CPU time of the programs before an exec, which `cpu_ms` contains.
    cpu_ms_before: u64,
    pub markers: u64,
    /// Time of the marker `load`, with which a program begins; `None` if it was not read.
    pub loaded: Option<f64>,
    /// The earliest time.
    pub first_time: Option<f64>,
    /// It wrote the marker `exit`. A process that was killed does not. Of a chain, the last process counts.
    pub has_exited: bool,
    /// Programs before this one in the same process, each of which ended in an exec and is no process of the list.
    pub began_as: Vec<String>,
    /// The program that followed by an exec.
    pub became: Option<String>,
    /// The begin of the process that goes on with the rounds.
    pub next_begins: Option<f64>,
    /// Of a chain, the processes before the last one that ended without the marker `exit`.
    pub ended_without_exit: u64,
    /// Processes that follow each other, joined into one; 1 for a single process.
    pub processes: u64,
    pub allocation_sites: SiteHistory,
    pub collections: Collections,
    pub seen_numbers: SeenNumbers,
    /// The latest marker and its time.
    last_clock: Option<(Order, f64)>,
}

/// The kernel's counts of kills in a control group, each with the times of the first and the last marker with it.
pub type KillCounts = BTreeMap<u64, (f64, f64)>;

pub fn add_kill_count(counts: &mut KillCounts, count: u64, (first, last): (f64, f64)) {
    let seen = counts.entry(count).or_insert((first, last));
    *seen = (seen.0.min(first), seen.1.max(last));
}

/// An allocation for which there is no room: its size, the line of the program that asks, and the bytes of the process with
/// it, without pages of files.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Refused {
    pub asked_bytes: u64,
    pub asked_at: Option<String>,
    pub needed_bytes: Option<u64>,
}

/// True for the first marker of a program. An exec begins another program in the same process.
pub fn begins_program(marker: &Marker) -> bool {
    marker.seq == Some(0) && marker.stage == Stage::Load.name()
}

/// A process that is silent for no longer may run.
pub const MIN_SILENCE_SECONDS: f64 = 60.0;

/// Two known names differ.
fn differ<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
    one.is_some() && other.is_some() && one != other
}

/// Host, boot, path and limit of a control group. A container has namespaces, which `boot` identifies, and a group of its own.
pub type GroupId<'a> = (
    Option<&'a str>,
    Option<ShortHash>,
    Option<ShortHash>,
    Option<u64>,
);

impl Process {
    /// `log` is the file with the marker.
    pub fn new(marker: &Marker, log: &str) -> Self {
        Process {
            pid: marker.pid,
            start: marker.start,
            proc: NO_NAME.to_owned(),
            log: marker.pid.is_none().then(|| log.to_owned()),
            processes: 1,
            ..Process::default()
        }
    }

    /// False if the marker is known to be of another machine. Only a program's first marker has the host.
    pub fn is_on_machine_of(&self, marker: &Marker) -> bool {
        !differ(&self.host, &marker.host) && !differ(&self.boot, &marker.boot)
    }

    /// False if the marker is known to be of another machine, or begins a program after the first marker of this one.
    pub fn may_have_written(&self, marker: &Marker) -> bool {
        let is_before = |first| first < marker.t.unwrap_or(f64::INFINITY);
        let has_begun = self.loaded.is_none() && self.first_time.is_some_and(is_before);
        self.is_on_machine_of(marker) && !(has_begun && begins_program(marker))
    }

    /// Adds a marker. A stage with more points is compacted. Returns false if the marker was read before.
    pub fn add(&mut self, marker: &Marker, order: Order, max_points: usize) -> bool {
        if marker.seq.is_some_and(|seq| !self.seen_numbers.insert(seq)) {
            return false;
        }
        let is_latest = self.last_clock.is_none_or(|(last, _)| order > last);
        let clock = marker.t.filter(|_| is_latest).map(|t| (order, t));
        self.last_clock = clock.or(self.last_clock);
        self.first_time = self.first_time.into_iter().chain(marker.t).reduce(f64::min);
        if begins_program(marker) {
            self.loaded = marker.t;
            self.cpu_ms_before = marker.cpu_ms.unwrap_or(0);
        }
        self.markers += 1;
        self.has_exited |= marker.stage == Stage::Exit.name();
        self.collections.add(marker, order);
        self.keep_first_names(marker);
        self.update_totals(marker);
        self.note_kills(marker);
        let site = self.place_of_site(marker);
        let series = self.series_mut(&marker.stage);
        series.push(Point::of(marker, order, site));
        if series.len() > max_points {
            series.compact(max_points);
        }
        true
    }

    fn keep_first_names(&mut self, marker: &Marker) {
        if self.proc == NO_NAME && !marker.proc.is_empty() {
            self.proc.clone_from(&marker.proc);
        }
        if self.alloc.is_none() && !marker.alloc.is_empty() {
            self.alloc = Some(marker.alloc.clone());
        }
        self.boot = self.boot.or(marker.boot);
        self.program = self.program.take().or_else(|| marker.program.clone());
        self.name = self.name.take().or_else(|| marker.name.clone());
        self.role = self.role.take().or_else(|| marker.role.clone());
        self.host = self.host.take().or_else(|| marker.host.clone());
        self.job = self.job.take().or_else(|| marker.job.clone());
        self.version = self.version.take().or_else(|| marker.version.clone());
        let changed = || marker.settings.clone().filter(|all| !all.is_empty());
        self.settings = self.settings.take().or_else(changed);
    }

    /// Identifies its control group.
    pub fn group(&self) -> GroupId<'_> {
        let limit = self.cgroup_limit.map(f64::to_bits);
        (self.host.as_deref(), self.boot, self.cgroup, limit)
    }

    /// Figures that are kept once per process, and not for each round.
    fn update_totals(&mut self, marker: &Marker) {
        let bytes = |known: Option<u64>| known.map(|bytes| bytes as f64);
        let peaks = [marker.rss_bytes, marker.hwm_bytes, marker.peak_bytes].map(bytes);
        self.peak_rss = peaks.into_iter().flatten().fold(self.peak_rss, f64::max);
        self.cgroup = marker.cgroup.or(self.cgroup);
        self.cpu_ms = self.cpu_ms.max(marker.cpu_ms);
        self.memory_limit = bytes(marker.memory_limit_bytes).or(self.memory_limit);
        self.host_memory = bytes(marker.host_memory_bytes).or(self.host_memory);
        self.cgroup_limit = bytes(marker.cgroup_limit_bytes).or(self.cgroup_limit);
        let (rss, files) = (marker.rss_bytes, marker.file_bytes.unwrap_or(0));
        let needed = |asked: u64| Some(rss?.saturating_sub(files).saturating_add(asked));
        let refused = marker.asked_bytes.map(|asked_bytes| Refused {
            asked_bytes,
            needed_bytes: needed(asked_bytes),
            asked_at: marker.asked_at.clone(),
        });
        self.refused = refused.or(self.refused.take());
    }

    fn note_kills(&mut self, marker: &Marker) {
        /// A group with more kills is restarted again and again. The latest counts are kept.
        const MAX_COUNTS: usize = 64;
        if let Some((t, count)) = marker.t.zip(marker.cgroup_oom_kills) {
            add_kill_count(&mut self.kill_counts, count, (t, t));
        }
        if self.kill_counts.len() > MAX_COUNTS {
            self.kill_counts.pop_first();
        }
    }

    /// The place of the marker's site in the list, to which it is added.
    fn place_of_site(&mut self, marker: &Marker) -> Option<u16> {
        let site = marker.site.as_ref()?;
        let known = self.sites.iter().position(|known| known == site);
        let place = known.unwrap_or(self.sites.len());
        if known.is_none() && place < MAX_SITES {
            self.sites.push(site.clone());
        }
        (place < MAX_SITES).then_some(place as u16)
    }

    /// Sorts the series, and gives markers without a round the round that the process was in.
    pub fn finish(&mut self) {
        let points = self.points();
        let rounds = points.filter_map(|point| Some((point.order, point.round?)));
        let mut rounds: Vec<(Order, i64)> = rounds.collect();
        rounds.sort_by_key(|(order, _)| *order);
        rounds.dedup_by_key(|(_, round)| *round);
        let round_at = |order: Order| {
            let next = rounds.partition_point(|(begin, _)| *begin <= order);
            let (_, round) = rounds.get(next.saturating_sub(1))?;
            (rounds.len() > 1).then_some(*round)
        };
        for series in &mut self.stages {
            series.finish(round_at);
        }
    }

    pub fn series_mut(&mut self, stage: &str) -> &mut Series {
        let known = |name: &str| self.stages.iter().position(|one| *one.stage == *name);
        let stage = match known(stage) {
            None if self.stages.len() >= MAX_STAGES => OTHER_STAGES,
            _ => stage,
        };
        let place = known(stage).unwrap_or(self.stages.len());
        if place == self.stages.len() {
            self.stages.push(Series::of_stage(stage));
        }
        &mut self.stages[place]
    }

    /// It wrote no marker but `load`.
    pub fn has_only_loaded(&self) -> bool {
        let mut stages = self.stages.iter();
        stages.all(|series| *series.stage == *Stage::Load.name())
    }

    /// CPU time of the program.
    pub fn cpu_seconds(&self) -> Option<f64> {
        Some(self.cpu_ms?.saturating_sub(self.cpu_ms_before) as f64 / 1000.0)
    }

    /// Counts those of a chain before this process as part of it.
    pub fn follow(&mut self, before: &Process) {
        // One without CPU time makes that of the chain unknown.
        let cpu_ms = self.cpu_ms.zip(before.cpu_ms);
        self.cpu_ms = cpu_ms.map(|(own, before)| own.saturating_add(before));
        self.cpu_ms_before = self.cpu_ms_before.saturating_add(before.cpu_ms_before);
        self.ended_without_exit = before.ended_without_exit + u64::from(!before.has_ended());
        self.markers += before.markers;
        self.processes += before.processes;
        self.peak_rss = self.peak_rss.max(before.peak_rss);
        self.refused = self.refused.take().or_else(|| before.refused.clone());
    }

    /// The value of a setting that differs from its default.
    pub fn setting(&self, name: &str) -> Option<&str> {
        let mut settings = self.settings.as_deref()?.split(' ');
        settings.find_map(|setting| setting.strip_prefix(name)?.strip_prefix('='))
    }

    pub fn records_sites(&self) -> bool {
        self.setting("FLARENA_SITES") == Some("on")
    }

    pub fn series(&self, stage: &str) -> Option<&Series> {
        self.stages.iter().find(|series| *series.stage == *stage)
    }

    /// The points of all stages.
    pub fn points(&self) -> impl Iterator<Item = &Point> + Clone {
        self.visits().map(|(_, point)| point)
    }

    /// The points of all stages, each with its stage.
    pub fn visits(&self) -> impl Iterator<Item = (&str, &Point)> + Clone {
        let stages = self.stages.iter();
        stages.flat_map(|one| one.points().iter().map(|point| (&*one.stage, point)))
    }

    /// The last marker with its stage.
    pub fn last_visit(&self) -> Option<(&str, &Point)> {
        self.visits().max_by_key(|(_, point)| point.order)
    }

    /// The last marker of the program's own, with its stage.
    pub fn last_own_visit(&self) -> Option<(&str, &Point)> {
        let others = [Stage::Periodic, Stage::AtLimit].map(Stage::name);
        let own = self.visits().filter(|(name, _)| !others.contains(name));
        own.max_by_key(|(_, point)| point.order)
    }

    pub fn last_rss(&self) -> Option<f64> {
        self.last_visit().map(|(_, point)| point.sizes.rss())
    }

    /// At the last marker that has it. A process that shares no memory has none.
    pub fn last_pss(&self) -> Option<f64> {
        let pss = |point: &Point| Some((point.order, point.sizes.get(Size::Pss)?));
        let known = self.points().filter_map(pss);
        let latest = known.max_by_key(|(order, _)| *order);
        latest.map(|(_, pss)| pss)
    }

    /// Time of the last marker, in seconds since 1970.
    pub fn last_time(&self) -> Option<f64> {
        self.last_clock.map(|(_, t)| t)
    }

    /// It wrote the marker `exit`, or became another program.
    pub fn has_ended(&self) -> bool {
        self.has_exited || self.became.is_some()
    }

    /// So many seconds after its last marker it may still run.
    pub fn silence(&self) -> f64 {
        self.longest_silence().max(MIN_SILENCE_SECONDS)
    }

    /// At this time it has been silent for longer than ever before, so that it may have ended.
    pub fn is_silent(&self, t: f64) -> bool {
        self.last_time()
            .is_none_or(|last| t - last > self.silence())
    }

    /// The longest time between two markers in seconds. A process of constant size writes its periodic markers at intervals that
    /// double: after one, the next may take twice as long.
    pub fn longest_silence(&self) -> f64 {
        let mut times: Vec<f64> = self.points().filter_map(|point| point.t).collect();
        times.sort_by(f64::total_cmp);
        let pauses = times.windows(2).map(|pair| pair[1] - pair[0]);
        let is_periodic = |(stage, _): (&str, &Point)| stage == Stage::Periodic.name();
        let factor = if self.last_visit().is_some_and(is_periodic) {
            2.0
        } else {
            1.0
        };
        pauses.fold(0.0, f64::max) * factor
    }
}
