//! Property tests with untrusted input: meaningful words in any order, and random bytes.
//! `PROPTEST_CASES` sets the number of cases. Failing inputs are kept in a file and tried first.

use proptest::prelude::*;

use crate::testing::fuzz::{any_environment, any_line, any_option_string};
use crate::{role, settings};

const WORDS: &[&str] = &[
    "dirty_decay_ms",
    "muzzy_decay_ms",
    "narenas",
    "background_thread",
    "thp",
    "prof",
    "metadata_thp",
    ":",
    ",",
    "true",
    "false",
    "-1",
    "0x",
    "017",
    "default",
    "18446744073709551615",
    "18446744073709551616",
    "auto",
    "off",
    "1",
    "64K",
    "2MB",
    "1TiB",
    "-",
    " ",
    "\t",
    "%",
    "=",
    "[RSS] ",
    "TR",
    " s=",
    "site-1",
    " r=",
    "3",
    " send: ",
    "512.3 MB",
    " MB",
    "1e300",
    "nan",
    "inf",
    "\u{e4}",
    "\n",
    "\0",
    "glibc",
    "jemalloc",
    "debug",
    "client",
    "server",
    "50%",
    "1.5G",
    ".",
    "e",
];

fn fragment() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => prop::sample::select(WORDS).prop_map(|word| word.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..9),
    ]
}

fn input() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(fragment(), 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn any_option_string_merges_to_valid_pairs_within_the_buffer(user in input(), room in 0usize..400) {
        any_option_string(&user, room);
    }

    #[test]
    fn any_environment_gives_settings_and_reports_bad_values(values in prop::collection::vec(input(), settings::TABLE.len())) {
        any_environment(|key| settings::TABLE.iter().position(|row| row.key == key).map(|at| &values[at][..]));
    }

    #[test]
    fn any_log_line_parses_without_panic(line in input()) {
        any_line(&line);
    }

    #[test]
    fn any_command_line_parses_without_panic(args in prop::collection::vec(input(), 0..8), has_client_api in any::<bool>()) {
        let surroundings = role::Surroundings { has_client_api, parent: None };
        let identity = role::identify(args.iter().map(|arg| &arg[..]), surroundings);
        let _ = identity.role();
    }
}
