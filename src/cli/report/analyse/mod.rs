//! Judges processes: finds the verdict and the numbers behind it, and sorts processes by urgency.
//!
//! `judge` decides the verdict with `stats`, `attribution` divides growth into kinds of memory, and
//! `garbage` corrects the verdict where garbage collections explain it. Everything is computed once,
//! so that all outputs show the same numbers.

#[cfg(test)]
mod accuracy;
mod attribution;
mod between_stages;
mod comparison;
mod finding;
#[cfg(test)]
pub mod fixtures;
mod garbage;
mod gpu;
#[cfg(test)]
mod job_noise;
mod judge;
mod kill;
mod request;
#[cfg(test)]
mod second_accuracy;
pub mod stats;
mod sweep;
mod time_to_limit;
mod together;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::model::{Point, Process, Series, Size, NO_NAME};
use super::units::or_dash;
use judge::Judged;
use stats::{median, Slope, Trend};

pub use attribution::median_sizes;
pub use between_stages::GrowthInside;
pub use comparison::{Comparison, Pair, SiteComparison, StageComparison};
pub use finding::{Cause, Finding, MemoryKind, NamedStep, Quantity, Verdict};
pub use garbage::swing;
pub use gpu::{Allocated, GpuGrowth};
pub use kill::Kill;
pub use request::{requests, Request};
pub use time_to_limit::{LimitOf, TimeToLimit};
pub use together::{Group, Grouping, Moment, Together};

/// The word in place of the verdict.
pub const KILLED: &str = "killed";

pub struct ProcessReport {
    pub process: Process,
    pub finding: Finding,
    pub stages: Vec<StageReport>,
    /// For a process that grows and has a memory limit.
    pub time_to_limit: Option<TimeToLimit>,
    /// RSS at the last marker; NaN if unknown.
    pub last_rss: f64,
    /// Growth that the program's own markers do not show.
    pub growth_inside: Option<GrowthInside>,
    /// Growth of PyTorch's memory on GPUs.
    pub gpu_growth: Option<GpuGrowth>,
    /// Evidence that the kernel killed it. Set by [`find_kills`].
    pub kill: Option<Kill>,
    /// PSS at the last marker that has it; NaN if it shares no memory.
    pub last_pss: f64,
}

pub struct StageReport {
    pub stage: String,
    pub rounds: u64,
    pub first: f64,
    pub last: f64,
    pub peak: f64,
    /// Growth of RSS and swap per unit of the finding; `None` for too few rounds, and for periodic
    /// markers beside rounds, whose growth is one per minute.
    pub growth: Option<Slope>,
}

impl ProcessReport {
    /// Bytes per round, if the verdict is a kind of growth.
    pub fn growth(&self) -> Option<&Slope> {
        let Finding { verdict, trend, .. } = &self.finding;
        verdict.is_growth().then_some(&trend.slope)
    }

    /// The verdict, or `killed`.
    pub fn verdict_name(&self) -> &'static str {
        match self.is_killed() {
            true => KILLED,
            false => self.finding.verdict.name(),
        }
    }

    pub fn is_killed(&self) -> bool {
        self.kill.as_ref().is_some_and(Kill::is_certain)
    }

    /// The series of the stage that decided the verdict.
    pub fn series(&self) -> Option<&Series> {
        self.process.series(&self.finding.stage)
    }

    /// `4711`, or `14 procs` for processes that follow each other.
    pub fn pid(&self) -> String {
        match self.process.processes {
            0 | 1 => or_dash(self.process.pid, |pid| pid.to_string()),
            n => format!("{n} procs"),
        }
    }

    /// NVFlare's process name, such as `TR`, and the name by `FLARENA_NAME`; without both, the
    /// program's name.
    pub fn process_name(&self) -> String {
        let Process {
            proc,
            name,
            program,
            ..
        } = &self.process;
        match (proc.as_str(), name.as_ref(), program) {
            ("-" | "", Some(name), _) => name.clone(),
            ("-" | "", None, Some(program)) => program.clone(),
            (proc, Some(name), _) if name != proc => format!("{proc} {name}"),
            (proc, ..) => proc.to_owned(),
        }
    }

    /// The site of the process, or the name of a process without one.
    pub fn site_or_name(&self) -> String {
        match self.process.sites.is_empty() {
            true => self.process_name(),
            false => self.process.site_names(),
        }
    }

    /// `site-1 TR, pid 4711`, or `site-1 TR, 14 processes, one a round`
    pub fn full_name(&self) -> String {
        let mut names = vec![self.process.site_names(), self.process_name()];
        names.retain(|name| name != NO_NAME);
        let n = self.process.processes;
        if n > 1 {
            let often = match n == self.finding.rounds {
                true => ", one a round",
                false => "",
            };
            return format!("{}, {n} processes{often}", names.join(" "));
        }
        match (names.join(" "), self.process.pid) {
            (names, None) if names.is_empty() => "unnamed process".to_owned(),
            (names, None) => names,
            (names, Some(pid)) if names.is_empty() => format!("pid {pid}"),
            (names, Some(pid)) => format!("{names}, pid {pid}"),
        }
    }
}

/// Judges the processes and sorts them: those that need attention first. `limit` is that of `--limit`.
pub fn analyse(processes: Vec<Process>, limit: Option<f64>) -> Vec<ProcessReport> {
    let judged = processes.into_iter();
    let judged = judged.filter_map(|process| Some((judge::judge(&process)?, process)));
    let judged: Vec<(Judged, Process)> = judged.collect();
    let swings = typical_swings(&judged);
    let reports = judged.into_iter().map(|(judged, process)| {
        let swing = swings.get(&kind(&process)).copied();
        report(process, judged.finding(swing), limit)
    });
    let mut reports: Vec<ProcessReport> = reports.collect();
    reports.sort_by(by_urgency);
    reports
}

/// What processes that do the same have in common, such as the trainers of all sites.
type Kind = (String, Option<String>, Option<String>);

fn kind(process: &Process) -> Kind {
    (
        process.proc.clone(),
        process.program.clone(),
        process.role.clone(),
    )
}

/// Processes of the same kind swing by about as much. The median decides for all of them, so that small differences do not
/// give them different verdicts.
fn typical_swings(judged: &[(Judged, Process)]) -> BTreeMap<Kind, f64> {
    let mut shares: BTreeMap<Kind, Vec<f64>> = BTreeMap::new();
    for (judged, process) in judged {
        if let Some(share) = judged.swing_share() {
            shares.entry(kind(process)).or_default().push(share);
        }
    }
    let shares = shares.into_iter();
    shares
        .map(|(kind, shares)| (kind, median(&shares)))
        .collect()
}

fn report(
    process: Process,
    (finding, trends): (Finding, Vec<Trend>),
    limit: Option<f64>,
) -> ProcessReport {
    let stages = process.stages.iter().zip(trends);
    let stages = stages.map(|((name, series), trend)| StageReport {
        stage: name.to_string(),
        rounds: series.rounds,
        first: series.first_rss(),
        last: series.last_rss(),
        peak: series.peak_rss(),
        growth: trend
            .known_slope()
            .filter(|_| series.unit() == finding.unit),
    });
    let stages = stages.collect();
    let last = process.last_visit();
    let last_rss = last.map_or(f64::NAN, |(_, point)| point.sizes[Size::Rss]);
    let with_pss = |point: &&Point| !point.sizes[Size::Pss].is_nan();
    let latest = process
        .points()
        .filter(with_pss)
        .max_by_key(|point| point.order);
    let last_pss = latest.map_or(f64::NAN, |point| point.sizes[Size::Pss]);
    ProcessReport {
        time_to_limit: TimeToLimit::estimate(&process, &finding, limit),
        gpu_growth: gpu::growth(&process, &finding.stage),
        growth_inside: between_stages::growth_inside(&process),
        kill: None,
        process,
        finding,
        stages,
        last_rss,
        last_pss,
    }
}

/// Finds the processes that the kernel most likely killed, and moves them to the front, before the candidates for a kill.
pub fn find_kills(reports: &mut [ProcessReport], may_run: impl Fn(&Process) -> bool) {
    let kills = kill::find(reports, may_run);
    for (report, kill) in reports.iter_mut().zip(kills) {
        report.kill = kill;
    }
    reports.sort_by_key(|report| match &report.kill {
        Some(kill) => u8::from(!kill.is_certain()),
        None => 2,
    });
}

/// Growing processes come first, sorted by growth per round. The others are sorted by verdict, with
/// those of a single round last, and then by name.
fn by_urgency(a: &ProcessReport, b: &ProcessReport) -> Ordering {
    let growth = |r: &ProcessReport| r.growth().map_or(0.0, |slope| slope.per_x);
    let identity = |r: &ProcessReport| {
        (
            name_and_number(&r.process.site_names()),
            r.process.proc.clone(),
            r.process.pid,
            r.process.start,
        )
    };
    let is_stable = |r: &ProcessReport| !r.finding.verdict.is_growth();
    is_stable(a)
        .cmp(&is_stable(b))
        .then(growth(b).total_cmp(&growth(a)))
        .then(
            a.finding
                .verdict
                .urgency()
                .cmp(&b.finding.verdict.urgency()),
        )
        .then((a.finding.rounds < 2).cmp(&(b.finding.rounds < 2)))
        .then_with(|| identity(a).cmp(&identity(b)))
}

/// Sorts `site-10` after `site-9`.
fn name_and_number(name: &str) -> (String, u64) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (stem.to_owned(), name[stem.len()..].parse().unwrap_or(0))
}

/// The number of processes with each verdict that occurs, the most urgent verdict first.
pub fn count_verdicts(reports: &[ProcessReport]) -> Vec<(Verdict, usize)> {
    let count = |v: Verdict| reports.iter().filter(|r| r.finding.verdict == v).count();
    let counts = Verdict::all().map(|v| (v, count(v)));
    counts.filter(|(_, n)| *n > 0).collect()
}
