//! The crate's fuzz target. `fuzz/Cargo.toml` builds this crate with `cfg(fuzzing)`.

#[cfg(not(fuzzing))]
#[path = "../../../fuzz/corpus.rs"]
mod corpus;

use crate::report::any_log;

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| any_log(input));

#[cfg(not(fuzzing))]
#[test]
fn the_saved_inputs_of_the_fuzzers_pass() {
    corpus::run("report", any_log);
}
