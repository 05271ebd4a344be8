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
mod time_to_limit;
mod together;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::model::Process;
use stats::median;

pub use attribution::median_sizes;
pub use between_stages::{growth_inside, GrowthInside};
pub use comparison::{Comparison, Pair, StageComparison};
pub use finding::{
    Cause, Finding, Level, MemoryKind, NamedStep, PeakGrowth, Quantity, Verdict, KILLED,
};
pub use fit::StageGrowth;
pub use gpu::{Allocated, GpuGrowth};
pub use kill::{Candidates, Kill};
pub use request::{requests, Request, Role};
pub use time_to_limit::{LimitOf, TimeToLimit};
pub use together::{Group, Together};

/// A process that swings by more than this share of its size is not flat.
const SWING_SHARE: f64 = 1.0 / 3.0;

/// The findings for processes with stages: those that need attention first. `limit` is that of `--limit`. `may_run` is true
/// for a process that runs, or may run elsewhere.
///
/// Processes that do the same, such as the trainers of all sites, swing by about as much. The median decides for all of
/// them, so that small differences do not give them different verdicts.
pub fn findings<'a>(
    processes: &'a [Process],
    limit: Option<f64>,
    may_run: impl Fn(&Process) -> bool,
) -> Vec<Finding<'a>> {
    let mut ends: HashMap<_, f64> = HashMap::new();
    for process in processes {
        let end = ends.entry(process.group()).or_default();
        *end = process.last_time().map_or(*end, |last| end.max(last));
    }
    let all = processes.iter().zip(kill::find(processes, may_run));
    let found = all
        .filter_map(|(process, kill)| judge::finding(process, kill, limit, ends[&process.group()]));
    let found: Vec<Finding> = found.collect();
    let kind = |process: &'a Process| (&process.proc, &process.program, &process.role);
    let mut shares: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for one in &found {
        let shares = shares.entry(kind(one.process)).or_default();
        shares.extend(one.swing_share);
    }
    let typical = shares.iter().map(|(kind, all)| (*kind, median(all)));
    let typical: BTreeMap<_, f64> = typical.collect();
    let judged = found.into_iter().map(|one| {
        let swings = one.swing_share.is_some() && typical[&kind(one.process)] > SWING_SHARE;
        let verdict = match one.verdict {
            Verdict::Flat | Verdict::Unclear if swings => Verdict::CyclicGarbage,
            verdict => verdict,
        };
        Finding { verdict, ..one }
    });
    let mut judged: Vec<Finding> = judged.collect();
    judged.sort_by_cached_key(urgency);
    judged
}

/// Killed processes come first, then candidates for a kill, then those that grow, the fastest first. The others are
/// sorted by verdict, with those of a single round last, and then by name.
fn urgency(finding: &Finding) -> impl Ord + use<> {
    let (process, kill) = (finding.process, finding.kill.as_ref());
    // Positive numbers have the order of their bits.
    let growth = finding.growth().map_or(0, |slope| slope.value.to_bits());
    (
        kill.map_or(2, |kill| u8::from(!kill.is_certain())),
        Reverse(growth),
        finding.verdict.urgency(),
        finding.series.rounds < 2,
        name_and_number(&process.site_names()),
        process.proc.clone(),
        process.pid,
        process.start,
    )
}

/// Sorts `site-10` after `site-9`.
fn name_and_number(name: &str) -> (String, u64) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (stem.to_owned(), name[stem.len()..].parse().unwrap_or(0))
}
