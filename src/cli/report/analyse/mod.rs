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
use std::collections::{BTreeMap, BTreeSet, HashMap};

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
    let all = processes.iter().zip(kill::find(processes, may_run));
    let found = all.filter_map(|(process, kill)| judge::finding(process, kill, limit));
    let found: Vec<Finding> = found.collect();
    let kind = |process: &'a Process| (&process.proc, &process.program, &process.role);
    let mut shares: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for one in &found {
        let shares = shares.entry(kind(one.process)).or_default();
        shares.extend(one.swing_share);
    }
    let typical = shares.iter().map(|(kind, all)| (*kind, median(all)));
    let typical: BTreeMap<_, f64> = typical.collect();
    let mut starts: BTreeMap<_, Vec<(f64, &Process)>> = BTreeMap::new();
    for process in processes {
        let starts = starts.entry(task(process)).or_default();
        starts.extend(process.first_time.map(|first| (first, process)));
    }
    let mut ends: HashMap<_, f64> = HashMap::new();
    for (process, last) in processes
        .iter()
        .filter_map(|one| Some((one, one.last_time()?)))
    {
        let end = ends.entry(process.group()).or_insert(last);
        *end = end.max(last);
    }
    for starts in starts.values_mut() {
        starts.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    let judged = found.into_iter().map(|one| {
        let swings = one.swing_share.is_some() && typical[&kind(one.process)] > SWING_SHARE;
        let verdict = match one.verdict {
            Verdict::Flat | Verdict::Unclear if swings => Verdict::CyclicGarbage,
            verdict => verdict,
        };
        let next_begins = next_begins(one.process, &starts[&task(one.process)]);
        Finding {
            verdict,
            next_begins,
            group_goes_on: ends.get(&one.process.group()).copied(),
            ..one
        }
    });
    let mut judged: Vec<Finding> = judged.collect();
    judged.sort_by_cached_key(urgency);
    judged
}

/// Processes with the same task on one machine may go on with the rounds of each other.
fn task(process: &Process) -> impl Ord + use<'_> {
    let names = (&process.proc, &process.program, &process.name);
    (
        &process.host,
        &process.sites,
        &process.job,
        &process.role,
        names,
    )
}

/// The start of the next one in `starts`, if it goes on with the rounds: its first one is later than those of the process, or
/// repeats the last of several.
fn next_begins(process: &Process, starts: &[(f64, &Process)]) -> Option<f64> {
    let last = process.last_time()?;
    let later = starts.partition_point(|(first, _)| *first < last);
    let mut later = starts[later..].iter();
    let (begin, next) = later.find(|(_, other)| !std::ptr::eq(*other, process))?;
    let rounds = |one: &Process| {
        let rounds: BTreeSet<i64> = one.points().filter_map(|point| point.round).collect();
        Some((*rounds.first()?, *rounds.last()?))
    };
    let ((own_first, own_last), (next_first, _)) = (rounds(process)?, rounds(next)?);
    let goes_on = next_first > own_last || next_first == own_last && own_first < own_last;
    goes_on.then_some(*begin)
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

/// The number of processes with each verdict that occurs, the most urgent verdict first.
pub fn count_verdicts(findings: &[Finding]) -> Vec<(Verdict, usize)> {
    let count = |v: Verdict| findings.iter().filter(|one| one.verdict == v).count();
    let counts = Verdict::all().map(|v| (v, count(v)));
    counts.filter(|(_, n)| *n > 0).collect()
}
