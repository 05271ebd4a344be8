//! The verdict in words: the evidence in one sentence, and what to do about it.

mod file_backed;
pub mod growth;
mod live_growth;
mod no_growth;
pub mod phrases;
mod pool;
mod retention;
mod swap;

use crate::report::analyse::finding::{Finding, Verdict};
use crate::report::analyse::garbage;
use crate::report::model::Process;
use crate::report::units::duration;

/// A second cause gets its remedy, too, from this share of the growth on.
const WORTHWHILE_SHARE: f64 = 0.25;

pub fn sentence(process: &Process, finding: &Finding) -> String {
    match finding.verdict {
        Verdict::LiveGrowth => live_growth::sentence(process, finding),
        Verdict::Retention => retention::sentence(process, finding),
        Verdict::Growth => growth::sentence(finding),
        Verdict::Swap => swap::sentence(process, finding),
        Verdict::FileBacked => file_backed::sentence(process, finding),
        Verdict::CyclicGarbage => garbage::sentence(process, finding),
        Verdict::Flat => no_growth::sentence(finding) + &garbage::in_time(process),
        Verdict::Unclear | Verdict::WarmingUp | Verdict::NotEnoughRounds => {
            no_growth::sentence(finding)
        }
    }
}

/// What to do, for each cause that is worth it.
pub fn remedy(process: &Process, finding: &Finding) -> Option<String> {
    if finding.verdict == Verdict::CyclicGarbage {
        return Some(garbage::REMEDY.to_owned());
    }
    if !finding.verdict.is_growth() {
        return None;
    }
    let causes = finding.causes.iter();
    let large = causes.filter(|cause| cause.share >= WORTHWHILE_SHARE);
    let mut verdicts = vec![finding.verdict];
    for verdict in large.map(|cause| cause.verdict()) {
        if !verdicts.contains(&verdict) {
            verdicts.push(verdict);
        }
    }
    let remedies = verdicts.into_iter().filter_map(|verdict| match verdict {
        Verdict::LiveGrowth => Some(live_growth::remedy(process, finding)),
        Verdict::Retention => Some(retention::remedy(process, finding)),
        Verdict::Growth => Some(growth::REMEDY),
        Verdict::Swap => Some(swap::REMEDY),
        Verdict::FileBacked => Some(file_backed::remedy(finding)),
        Verdict::CyclicGarbage
        | Verdict::Unclear
        | Verdict::WarmingUp
        | Verdict::Flat
        | Verdict::NotEnoughRounds => None,
    });
    Some(remedies.collect::<Vec<_>>().join("; "))
}

/// `3.5 h` from the first marker to the last.
pub fn watched(process: &Process) -> Option<String> {
    let points = process
        .stages
        .iter()
        .flat_map(|(_, series)| series.points());
    let times = points.map(|point| point.t);
    let first = times.clone().fold(f64::NAN, f64::min);
    let last = times.fold(f64::NAN, f64::max);
    (last > first).then(|| duration(last - first))
}
