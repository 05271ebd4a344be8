#![no_main]
libfuzzer_sys::fuzz_target!(|input: &[u8]| flarena_shared::testing::fuzz::marker(input));
