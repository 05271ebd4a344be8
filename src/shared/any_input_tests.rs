//! What comes from outside may be anything: words that mean something, in any order and cut anywhere, and noise.
//! `PROPTEST_CASES` asks for more; what was found once is kept beside, and tried first.

use proptest::prelude::*;

use crate::fuzz::{any_environment, any_line, any_option_string};
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
    fn any_option_string_merges_into_its_room_and_into_good_pairs_alone(user in input(), room in 0usize..400) {
        any_option_string(&user, room);
    }

    #[test]
    fn any_environment_gives_settings_and_names_what_it_could_not_use(values in prop::collection::vec(input(), settings::TABLE.len())) {
        any_environment(|key| settings::TABLE.iter().position(|row| row.key == key).map(|at| &values[at][..]));
    }

    #[test]
    fn any_line_is_a_marker_or_none(line in input()) {
        any_line(&line);
    }

    #[test]
    fn any_command_line_has_a_role_or_none(args in prop::collection::vec(input(), 0..8), is_trainer in any::<bool>()) {
        let identity = role::identify(args.iter().map(|arg| &arg[..]), is_trainer);
        let _ = identity.role();
    }
}
