//! It grows, and nothing tells who holds it.

use crate::report::analyse::finding::Finding;
use crate::report::explain::phrases::grows;

pub const REMEDY: &str =
    "run it with `flarena run --profile`: its markers tell live memory from retained";

pub fn sentence(finding: &Finding) -> String {
    let grows = grows(finding);
    format!("{grows}; these markers hold RSS only, which cannot tell who holds it.")
}
