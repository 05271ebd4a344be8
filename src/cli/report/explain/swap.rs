//! The kernel pushes pages out.

use crate::report::analyse::finding::{Finding, Quantity};
use crate::report::explain::phrases::grows;
use crate::report::model::{Process, Size};
use crate::report::units::size;

pub const REMEDY: &str =
    "give the job more memory, or fewer neighbours; swapped pages slow it down";

pub fn sentence(process: &Process, finding: &Finding) -> String {
    let limit = match process.limit {
        limit if limit.is_nan() => String::new(),
        limit => format!(" (limit {})", size(limit)),
    };
    let (grows, rss) = (grows(finding), size(finding.typical[Size::Rss]));
    let whole = match finding.quantity {
        Quantity::Swap => ", what the process takes in all does not",
        _ => "",
    };
    format!("{grows}{whole}; RSS is {rss}: the kernel pushes pages out{limit}.")
}
