//! Judges processes: finds the verdict and the numbers behind it, and sorts processes by urgency.
//!
//! `fit` describes a process by trends from `stats`, and `judge` makes the finding: `attribution` divides growth into
//! kinds of memory, and `garbage` finds garbage that collections free. Everything is computed once, so that all outputs
//! show the same numbers.

#[cfg(test)]
mod accuracy;
mod attribution;
mod between_stages;
mod comparison;
mod finding;
mod fit;
#[cfg(test)]
pub mod fixtures;
mod garbage;
mod gpu;
#[cfg(test)]
mod job_noise;
mod judge;
mod kill;
mod pace;
mod request;
#[cfg(test)]
mod second_accuracy;
pub mod stats;
mod sweep;
mod time_to_limit;
mod together;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::model::{Point, Process, Series, Size};
use stats::{median, Slope};

pub use attribution::median_sizes;
pub use between_stages::GrowthInside;
pub use comparison::{Comparison, Pair, StageComparison};
pub use finding::{Cause, Finding, Level, MemoryKind, NamedStep, PeakGrowth, Quantity, Verdict};
pub use fit::Fit;
pub use gpu::{Allocated, GpuGrowth};
pub use kill::{find as kills, Candidates, Kill};
pub use request::{requests, Request, Role};
pub use time_to_limit::{LimitOf, TimeToLimit};
pub use together::{Group, Together};

/// The word in place of the verdict.
pub const KILLED: &str = "killed";

pub struct ProcessReport {
    pub process: Process,
    pub finding: Finding,
    pub stages: Vec<StageReport>,
    /// For a process that grows and has a memory limit.
    pub time_to_limit: Option<TimeToLimit>,
    /// RSS at the last marker.
    pub last_rss: Option<f64>,
    /// Growth that the program's own markers do not show.
    pub growth_inside: Option<GrowthInside>,
    /// Growth of PyTorch's memory on GPUs.
    pub gpu_growth: Option<GpuGrowth>,
    /// Evidence that the kernel killed it.
    pub kill: Option<Kill>,
    /// PSS at the last marker that has it. A process that shares no memory has none.
    pub last_pss: Option<f64>,
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
    pub fn of(
        process: Process,
        (finding, stages): (Finding, Vec<StageReport>),
        kill: Option<Kill>,
        limit: Option<f64>,
    ) -> ProcessReport {
        let last = process.last_visit();
        let pss = |point: &Point| point.sizes.get(Size::Pss);
        let with_pss = process.points().filter(|point| pss(point).is_some());
        let latest = with_pss.max_by_key(|point| point.order);
        ProcessReport {
            time_to_limit: TimeToLimit::estimate(&process, &finding, limit),
            gpu_growth: gpu::growth(&process, &finding.stage),
            growth_inside: between_stages::growth_inside(&process),
            last_rss: last.map(|(_, point)| point.sizes.rss()),
            last_pss: latest.and_then(pss),
            kill,
            process,
            finding,
            stages,
        }
    }

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
}

/// Makes the findings from the fits. Processes that do the same, such as the trainers of all sites, swing by about as
/// much. The median decides for all of them, so that small differences do not give them different verdicts.
pub fn findings<'a>(fits: Vec<Option<Fit<'a>>>) -> Vec<Option<(Finding, Vec<StageReport>)>> {
    let kind = |process: &'a Process| (&process.proc, &process.program, &process.role);
    let mut shares: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for fit in fits.iter().flatten() {
        let shares = shares.entry(kind(fit.stage.process)).or_default();
        shares.extend(fit.swing_share());
    }
    let finding = |fit: Fit<'a>| {
        let typical = |_| median(&shares[&kind(fit.stage.process)]);
        let finding = judge::finding(&fit, fit.swing_share().map(typical));
        (finding, fit.stages)
    };
    fits.into_iter().map(|fit| fit.map(finding)).collect()
}

/// Killed processes come first, then candidates for a kill, then those that grow, the fastest first. The others are
/// sorted by verdict, with those of a single round last, and then by name.
pub fn sort(reports: &mut [ProcessReport]) {
    reports.sort_by_cached_key(|report| {
        let (process, finding) = (&report.process, &report.finding);
        let kill = report.kill.as_ref();
        // Positive numbers have the order of their bits.
        let growth = report.growth().map_or(0, |slope| slope.per_x.to_bits());
        (
            kill.map_or(2, |kill| u8::from(!kill.is_certain())),
            Reverse(growth),
            finding.verdict.urgency(),
            finding.rounds < 2,
            name_and_number(&process.site_names()),
            process.proc.clone(),
            process.pid,
            process.start,
        )
    });
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
