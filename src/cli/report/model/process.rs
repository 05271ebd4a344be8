//! One process: its identity, its stages, its collections and its allocation sites.

use flarena_shared::marker::Boot;
use flarena_shared::stages::Stage;

use super::collections::Collections;
use super::order::{Order, SeenNumbers};
use super::sample::{Sample, Size, NO_NAME};
use super::series::{Axis, Point, Series};
use super::site_history::SiteHistory;

/// Stages beyond this number are counted as one. A program has so many if it puts a step number
/// into their names.
const MAX_STAGES: usize = 48;
const OTHER_STAGES: &str = "(other stages)";
/// Further sites are not listed.
const MAX_SITES: usize = 1000;
/// More sites are counted in the name of a process.
const MAX_NAMED_SITES: usize = 3;

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
    pub boot: Option<String>,
    /// Version of flarena.
    pub version: Option<String>,
    /// Settings that differ from their defaults, separated by spaces.
    pub settings: Option<String>,
    /// The log of a process whose lines have no pid.
    pub log: Option<String>,
    pub stages: Vec<(Box<str>, Series)>,
    /// The latest limit; NaN if there is none.
    pub cgroup_limit: f64,
    /// The latest `FLARENA_MEMORY_LIMIT`, and the memory of the machine.
    pub memory_limit: Option<f64>,
    pub host_memory: Option<f64>,
    /// The kernel's counts of kills in the cgroup, in the order of the markers.
    pub kill_counts: Vec<KillCount>,
    /// The highest RSS, also between the markers; NaN if unknown.
    pub peak_rss: f64,
    /// The highest CPU time in the markers; NaN if unknown.
    cpu_ms: f64,
    /// Correction of `cpu_ms`. A chain adds the CPU time of its earlier processes. An exec keeps the CPU time of the program
    /// before it, which is subtracted.
    cpu_ms_offset: f64,
    pub markers: u64,
    /// Time of the marker `load`, with which a program begins; `None` if it was not read.
    pub loaded: Option<f64>,
    /// The earliest time; infinite if the markers have none.
    pub first_time: f64,
    /// It wrote the marker `exit`. A process that was killed does not. Of a chain, the last process counts.
    pub has_exited: bool,
    /// Programs before this one in the same process, each of which ended in an exec and is no process of the list.
    pub began_as: Vec<String>,
    /// The program that followed by an exec.
    pub became: Option<String>,
    /// Of a chain, the processes before the last one that ended without the marker `exit`.
    pub ended_without_exit: u64,
    /// Processes that follow each other, joined into one; 1 for a single process.
    pub processes: u64,
    pub allocation_sites: SiteHistory,
    pub collections: Collections,
    seen_numbers: SeenNumbers,
    /// The latest marker and its time.
    last_clock: Option<(Order, f64)>,
}

/// The kernel's count of kills in the control group of a process, and the times of its first and last marker with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KillCount {
    pub count: f64,
    pub first: f64,
    pub last: f64,
}

/// An anomaly of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Notice {
    Repeated,
    TooManyProcesses,
}

/// Identifies a program of a process by the time at which it was loaded, in microseconds.
pub type Program = Option<u64>;

impl Process {
    /// The boot as the records of allocation sites have it.
    pub fn boot_key(&self) -> Option<Boot> {
        Boot::try_from(self.boot.clone()?).ok()
    }

    pub fn program_key(&self) -> Program {
        self.loaded.map(|t| (t * 1e6) as u64)
    }

    pub fn new(sample: &Sample, log: Option<String>) -> Self {
        Process {
            pid: sample.pid,
            start: sample.start,
            proc: NO_NAME.to_owned(),
            log,
            // Unknown is NaN. `default` would say 0.
            cgroup_limit: f64::NAN,
            peak_rss: f64::NAN,
            cpu_ms: f64::NAN,
            first_time: f64::INFINITY,
            processes: 1,
            ..Process::default()
        }
    }

    /// Adds a sample. `total_points` counts the points of all processes and is kept up to date.
    pub fn add(
        &mut self,
        sample: &Sample,
        order: Order,
        max_points_per_stage: usize,
        total_points: &mut usize,
    ) -> Option<Notice> {
        let seq = sample.seq;
        if seq.is_some_and(|seq| !self.seen_numbers.insert(seq)) {
            return Some(Notice::Repeated);
        }
        self.advance_clock(order, sample.t);
        self.first_time = sample.t.map_or(self.first_time, |t| t.min(self.first_time));
        if sample.begins_program() {
            self.loaded = sample.t;
            self.cpu_ms_offset = -sample.cpu_ms.unwrap_or(0.0);
        }
        self.markers += 1;
        self.has_exited |= sample.stage == Stage::Exit.name();
        self.collections.add(sample, order);
        self.update_identity(sample);
        self.update_totals(sample);
        let site = self.place_of_site(sample);
        let series = self.series_mut(&sample.stage);
        *total_points -= series.len();
        series.push(Point::of(sample, order, site));
        if series.len() > max_points_per_stage {
            series.compact(max_points_per_stage);
        }
        *total_points += series.len();
        None
    }

    fn advance_clock(&mut self, order: Order, t: Option<f64>) {
        let is_latest = self.last_clock.is_none_or(|(last, _)| order > last);
        self.last_clock = t
            .map(|t| (order, t))
            .filter(|_| is_latest)
            .or(self.last_clock);
    }

    fn update_identity(&mut self, sample: &Sample) {
        if self.proc == NO_NAME && !sample.proc.is_empty() {
            self.proc.clone_from(&sample.proc);
        }
        let names = [
            (&mut self.program, &sample.program),
            (&mut self.name, &sample.name),
            (&mut self.role, &sample.role),
            (&mut self.alloc, &sample.alloc),
            (&mut self.host, &sample.host),
            (&mut self.boot, &sample.boot),
            (&mut self.job, &sample.job),
            (&mut self.version, &sample.library_version),
            (&mut self.settings, &sample.settings),
        ];
        for (mine, theirs) in names {
            if mine.is_none() {
                mine.clone_from(theirs);
            }
        }
    }

    /// Figures that are kept once per process, and not for each round.
    fn update_totals(&mut self, sample: &Sample) {
        let rss = sample.sizes[Size::Rss];
        let peak = sample.peak_rss.unwrap_or(f64::NAN);
        self.peak_rss = self.peak_rss.max(rss).max(peak);
        self.note_kills(sample);
        self.cpu_ms = self.cpu_ms.max(sample.cpu_ms.unwrap_or(f64::NAN));
        self.memory_limit = sample.memory_limit.or(self.memory_limit);
        self.host_memory = sample.host_memory.or(self.host_memory);
        self.cgroup_limit = sample.cgroup_limit.unwrap_or(self.cgroup_limit);
    }

    fn note_kills(&mut self, sample: &Sample) {
        /// A group with more kills is restarted again and again. The latest counts are kept.
        const MAX_COUNTS: usize = 64;
        let Some((t, count)) = sample.t.zip(sample.oom_kills) else {
            return;
        };
        match self.kill_counts.iter_mut().find(|seen| seen.count == count) {
            Some(seen) => (seen.first, seen.last) = (seen.first.min(t), seen.last.max(t)),
            None => {
                if self.kill_counts.len() == MAX_COUNTS {
                    self.kill_counts.remove(0);
                }
                // Most groups see one count. The default capacity of four would waste memory.
                self.kill_counts.reserve_exact(1);
                self.kill_counts.push(KillCount {
                    count,
                    first: t,
                    last: t,
                });
            }
        }
    }

    /// The count at its last marker that has one.
    pub fn kill_count(&self) -> Option<f64> {
        let counts = self.kill_counts.iter().map(|seen| seen.count);
        counts.reduce(f64::max)
    }

    /// The place of the marker's site in the list, to which it is added.
    fn place_of_site(&mut self, sample: &Sample) -> Option<u16> {
        let site = sample.site.as_ref()?;
        let known = self.sites.iter().position(|known| known == site);
        let place = known.unwrap_or(self.sites.len());
        if known.is_none() && place < MAX_SITES {
            self.sites.push(site.clone());
        }
        (place < MAX_SITES).then_some(place as u16)
    }

    pub fn has_seen(&self, seq: u64) -> bool {
        self.seen_numbers.contains(seq)
    }

    /// Sorts the series, and gives markers without a round the round that the process was in.
    pub fn finish(&mut self) {
        let stages = self.stages.iter_mut();
        stages.for_each(|(_, series)| series.finish());
        let with_round = self.points().filter(|point| !point.round.is_nan());
        let mut rounds: Vec<(Order, f64)> = with_round.map(|p| (p.order, p.round)).collect();
        rounds.sort_by_key(|(order, _)| *order);
        rounds.dedup_by(|later, earlier| later.1 == earlier.1);
        if rounds.len() < 2 {
            return;
        }
        let round_at = |order: Order| {
            let next = rounds.partition_point(|(begin, _)| *begin <= order);
            rounds.get(next.saturating_sub(1)).map(|(_, round)| *round)
        };
        for (_, series) in &mut self.stages {
            series.fill_rounds(round_at);
        }
    }

    fn series_mut(&mut self, stage: &str) -> &mut Series {
        let is_full = self.stages.len() >= MAX_STAGES;
        let known = |name: &str| self.stages.iter().position(|(s, _)| **s == *name);
        let stage = match known(stage) {
            None if is_full => OTHER_STAGES,
            _ => stage,
        };
        let place = known(stage).unwrap_or_else(|| {
            let axis = match stage == Stage::Periodic.name() {
                true => Axis::Minutes,
                false => Axis::Rounds,
            };
            self.stages.push((stage.into(), Series::new(axis)));
            self.stages.len() - 1
        });
        &mut self.stages[place].1
    }

    /// CPU time of the program in seconds; NaN if unknown.
    pub fn cpu_seconds(&self) -> f64 {
        (self.cpu_ms + self.cpu_ms_offset) / 1000.0
    }

    /// Counts those of a chain before this process as part of it.
    pub fn follow(&mut self, before: &Process) {
        self.cpu_ms_offset += before.cpu_ms + before.cpu_ms_offset;
        self.ended_without_exit =
            before.ended_without_exit + u64::from(!before.has_exited && before.became.is_none());
        self.markers += before.markers;
        self.processes += before.processes;
        self.peak_rss = self.peak_rss.max(before.peak_rss);
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
        let named = self.stages.iter().find(|(name, _)| **name == *stage);
        named.map(|(_, series)| series)
    }

    /// The points of all stages.
    pub fn points(&self) -> impl Iterator<Item = &Point> + Clone {
        self.stages.iter().flat_map(|(_, series)| series.points())
    }

    /// Each stage with its last visit.
    pub fn last_visits(&self) -> impl Iterator<Item = (&str, &Point)> {
        let stages = self.stages.iter();
        stages.filter_map(|(name, series)| Some((&**name, series.points().last()?)))
    }

    /// The last marker with its stage.
    pub fn last_visit(&self) -> Option<(&str, &Point)> {
        self.last_visits().max_by_key(|(_, point)| point.order)
    }

    /// The last marker of the program's own, with its stage.
    pub fn last_own_visit(&self) -> Option<(&str, &Point)> {
        let own = self.last_visits().filter(|(name, _)| {
            ![Stage::Periodic, Stage::AtLimit]
                .map(Stage::name)
                .contains(name)
        });
        own.max_by_key(|(_, point)| point.order)
    }

    /// Time of the last marker, in seconds since 1970; NaN if unknown.
    pub fn last_time(&self) -> f64 {
        self.last_clock.map_or(f64::NAN, |(_, t)| t)
    }

    /// The longest time between two markers in seconds.
    pub fn longest_silence(&self) -> f64 {
        let mut times: Vec<f64> = self.points().map(|p| p.t).filter(|t| !t.is_nan()).collect();
        times.sort_by(f64::total_cmp);
        let pauses = times.windows(2).map(|pair| pair[1] - pair[0]);
        pauses.fold(0.0, f64::max)
    }

    /// `site-1`, `site-1, site-2`, `20 clients`, or `-`.
    pub fn site_names(&self) -> String {
        match &self.sites[..] {
            [] => NO_NAME.to_owned(),
            sites if sites.len() > MAX_NAMED_SITES => format!("{} clients", sites.len()),
            sites => sites.join(", "),
        }
    }
}
