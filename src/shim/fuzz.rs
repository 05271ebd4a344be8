//! The entries of the fuzzers, which lie in the rooms that they enter.

#[path = "../../fuzz/driver.rs"]
mod driver;

use crate::{governor, recycler};

const TARGETS: &[driver::Target] = &[
    ("control", governor::fuzz::any_request),
    ("recycler", recycler::fuzz::any_calls),
];

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| driver::run_chosen(TARGETS, input));

#[cfg(not(fuzzing))]
#[test]
fn the_kept_inputs_of_the_fuzzers_find_nothing() {
    driver::run_corpora(TARGETS);
}
