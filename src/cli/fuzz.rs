//! The entry points of the fuzzers.

#[macro_use]
#[path = "../../fuzz/driver.rs"]
mod driver;

use crate::report;

const TARGETS: &[driver::Target] = &[("report", report::fuzz::any_log)];
enter!(TARGETS);
