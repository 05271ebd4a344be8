//! One process: who it is, and its stages.

use super::collections::Collections;
use super::order::{Order, Seen};
use super::sample::{or_zero, Sample, Size, NO_NAME};
use super::series::{Point, Series};
use super::site_history::History;

use flarena_shared::stages::Stage;

/// Stages beyond these are counted together: someone wrote the step number into the name.
const MOST_STAGES: usize = 48;
const OTHER_STAGES: &str = "(other stages)";
const MOST_SITES: usize = 16;

#[derive(Default)]
pub struct Process {
    pub pid: Option<u32>,
    /// Clock ticks since boot: with the pid it names one process.
    pub start: Option<u64>,
    pub proc: String,
    /// File name of the program.
    pub program: Option<String>,
    pub role: Option<String>,
    /// More than one in a simulator that runs its clients as threads.
    pub sites: Vec<String>,
    pub alloc: Option<String>,
    /// The log it was read from, when the lines carry no pid.
    pub log: Option<String>,
    pub stages: Vec<(Box<str>, Series)>,
    /// The last cgroup limit; NaN: none.
    pub limit: f64,
    /// The highest RSS, between the markers too; NaN: not known.
    pub hwm: f64,
    pub samples: u64,
    /// Which lines hold what.
    pub held: History,
    pub collections: Collections,
    seen: Seen,
    clock: Option<(Order, f64)>,
}

/// What is odd about a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Notice {
    Repeated,
    /// By so many seconds.
    ClockWentBack(f64),
    TooManyProcesses,
}

impl Process {
    pub fn new(sample: &Sample, log: Option<String>) -> Self {
        Process {
            pid: sample.pid,
            start: sample.start,
            log,
            limit: f64::NAN,
            hwm: f64::NAN,
            ..Process::default()
        }
    }

    /// `points`: of all processes.
    pub fn add(
        &mut self,
        sample: &Sample,
        order: Order,
        most_points: usize,
        points: &mut usize,
    ) -> Option<Notice> {
        if sample.seq.is_some_and(|seq| !self.seen.insert(seq)) {
            return Some(Notice::Repeated);
        }
        let back = self.tick(order, sample.t);
        self.samples += 1;
        self.collections.add(sample, order);
        self.describe(sample);
        let series = self.series_of(&sample.stage);
        *points -= series.len();
        series.push(Point {
            order,
            round: sample.round.map_or(f64::NAN, |round| round as f64),
            t: sample.t.unwrap_or(f64::NAN),
            sizes: sample.sizes,
            peak: sample.sizes[Size::Rss],
            count: 1.0,
        });
        if series.len() > most_points {
            series.compact(most_points);
        }
        *points += series.len();
        back.map(Notice::ClockWentBack)
    }

    fn tick(&mut self, order: Order, t: Option<f64>) -> Option<f64> {
        // Threads that mark at the same moment may swap places by a little.
        const TOLERANCE_SECONDS: f64 = 2.0;
        let t = t?;
        let (last_order, last_t) = *self.clock.get_or_insert((order, t));
        if order <= last_order {
            return None;
        }
        self.clock = Some((order, t));
        (last_t - t > TOLERANCE_SECONDS).then_some(last_t - t)
    }

    fn describe(&mut self, sample: &Sample) {
        if self.proc.is_empty() || self.proc == NO_NAME {
            self.proc = sample.proc.clone().into_owned();
        }
        let keep = |mine: &mut Option<String>, theirs: &Option<std::borrow::Cow<str>>| {
            if mine.is_none() {
                *mine = theirs.as_deref().map(str::to_owned);
            }
        };
        keep(&mut self.program, &sample.program);
        keep(&mut self.role, &sample.role);
        keep(&mut self.alloc, &sample.alloc);
        if let Some(site) = sample.site.as_deref() {
            if self.sites.len() < MOST_SITES && !self.sites.iter().any(|known| known == site) {
                self.sites.push(site.to_owned());
            }
        }
        self.hwm = self.hwm.max(sample.hwm).max(sample.sizes[Size::Rss]);
        if !sample.limit.is_nan() {
            self.limit = sample.limit;
        }
    }

    fn series_of(&mut self, stage: &str) -> &mut Series {
        let is_full = self.stages.len() >= MOST_STAGES;
        let known = |name: &str| self.stages.iter().position(|(s, _)| **s == *name);
        let stage = match known(stage) {
            None if is_full => OTHER_STAGES,
            _ => stage,
        };
        let place = known(stage).unwrap_or_else(|| {
            let timed = stage == Stage::Periodic.name();
            self.stages.push((stage.into(), Series::new(timed)));
            self.stages.len() - 1
        });
        &mut self.stages[place].1
    }

    pub fn series(&self, stage: &str) -> Option<&Series> {
        let named = self.stages.iter().find(|(name, _)| **name == *stage);
        named.map(|(_, series)| series)
    }

    /// What cannot be taken back at the last markers: of its control group, else of the process.
    pub fn used(&self) -> f64 {
        let used = self.last_points().map(|point| {
            let group = point.sizes[Size::Cgroup] - or_zero(point.sizes[Size::CgroupReclaimable]);
            f64::max(group, point.sizes.footprint())
        });
        used.fold(f64::NAN, f64::max)
    }

    /// Of each stage.
    pub fn last_points(&self) -> impl Iterator<Item = &Point> {
        let stages = self.stages.iter();
        stages.filter_map(|(_, series)| series.points().last())
    }

    /// Wall clock of the last marker, in seconds since 1970; NaN: not told.
    pub fn last_time(&self) -> f64 {
        self.clock.map_or(f64::NAN, |(_, t)| t)
    }

    /// `site-1`, `site-1, site-2`, or `-`.
    pub fn site(&self) -> String {
        match &self.sites[..] {
            [] => NO_NAME.to_owned(),
            sites => sites.join(", "),
        }
    }
}
