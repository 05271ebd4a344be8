//! The entries of the fuzzers.

#[path = "../../fuzz/driver.rs"]
mod driver;

use crate::report;

const TARGETS: &[driver::Target] = &[("report", report::fuzz::any_log)];

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| driver::run_chosen(TARGETS, input));

#[cfg(not(fuzzing))]
#[test]
fn the_kept_inputs_of_the_fuzzers_find_nothing() {
    driver::run_corpora(TARGETS);
}
