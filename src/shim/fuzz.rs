//! The entry points of the fuzzers.

#[macro_use]
#[path = "../../fuzz/driver.rs"]
mod driver;

use crate::governor;

const TARGETS: &[driver::Target] = &[("control", governor::any_request)];
enter!(TARGETS);
