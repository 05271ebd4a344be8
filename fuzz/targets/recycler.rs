#![no_main]
libfuzzer_sys::fuzz_target!(|input: &[u8]| flarena_recycler::testing::fuzz::any_calls(input));
