//! The program itself holds more each round.

use crate::report::analyse::finding::{Finding, Holder, Quantity};
use crate::report::explain::phrases::{grows, level, shares};
use crate::report::explain::pool::Pool;
use crate::report::model::Process;

const REMEDY: &str =
    "look for a list, cache or history that gains an entry each time; `flarena run --sites` names the line";
const REMEDY_WITH_LINES: &str =
    "look where the lines named below put what they allocate: a list, cache or history that gains an entry each time";

pub fn remedy(process: &Process, finding: &Finding) -> &'static str {
    let own = match process.held.rounds().is_empty() {
        true => REMEDY,
        false => REMEDY_WITH_LINES,
    };
    Pool::of(finding).map_or(own, |pool| pool.remedy)
}

pub fn sentence(process: &Process, finding: &Finding) -> String {
    let (grows, unit) = (grows(finding), finding.unit);
    if finding.quantity == Quantity::Live {
        let level = level(finding);
        return format!("{grows}, but {level}: so far it fills pages that the allocator had left.");
    }
    if finding.quantity == Quantity::Floor {
        return format!(
            "{grows}: the program holds more each {unit}, beside the garbage that they release."
        );
    }
    let shares = shares(process, finding);
    let first = finding.causes.first();
    let outside = first.is_some_and(|cause| cause.holder == Holder::Outside);
    let whose = match Pool::of(finding) {
        Some(pool) => format!(" ({})", pool.name),
        None if outside => " (small Python objects, pinned or mapped buffers)".to_owned(),
        None => String::new(),
    };
    format!("{grows}: {shares}{whose}. The program holds more each {unit}.")
}
