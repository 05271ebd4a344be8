//! The entries of the fuzzers, which lie in the rooms that they enter.

#[macro_use]
#[path = "../../fuzz/driver.rs"]
mod driver;

use crate::governor;

const TARGETS: &[driver::Target] = &[("control", governor::fuzz::any_request)];
enter!(TARGETS);
