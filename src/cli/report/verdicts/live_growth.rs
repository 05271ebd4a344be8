//! The program itself holds more each round.

use crate::report::finding::{Finding, Holder, Quantity};
use crate::report::model::Process;
use crate::report::phrase::{grows, level, shares};

pub const REMEDY: &str =
    "look for a list, cache or history that gains an entry each time; `flarena run --sites` names the line";

pub fn sentence(process: &Process, finding: &Finding) -> String {
    let (grows, unit) = (grows(finding), finding.unit);
    if finding.quantity == Quantity::Live {
        let level = level(finding);
        return format!("{grows}, but {level}: so far it fills pages that the allocator had left.");
    }
    let shares = shares(process, finding);
    let outside = finding
        .causes
        .first()
        .is_some_and(|cause| cause.holder == Holder::Outside);
    let whose = if outside {
        " (small Python objects, pinned or mapped buffers)"
    } else {
        ""
    };
    format!("{grows}: {shares}{whose}. The program holds more each {unit}.")
}
