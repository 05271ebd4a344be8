//! Marker files and logs come from anywhere: pieces of records in any order and cut anywhere, and noise.

use proptest::prelude::*;

use super::line;
use crate::control::Stats;

const RECORD: &str = r#"{"v":1,"t":1763619820.5,"pid":123,"ppid":1,"start":9,"proc":"TR","stage":"send","alloc":"glibc","rss_bytes":1048576,"seq":17}"#;
const PIECES: &[&str] = &[
    RECORD,
    "{\"v\":",
    "1",
    ",",
    "}",
    "{",
    "[",
    "\"",
    "\\\"",
    "\"t\":",
    "1e308",
    "-1e999",
    "\"pid\":",
    "-1",
    "99999999999999999999",
    "\"stage\":",
    "\"send\"",
    "\"rss_bytes\":",
    "null",
    "true",
    "\"message\":",
    "\"log\":",
    "\"msg\":",
    "[RSS] TR s=a r=1 send: 5 MB",
    "2026-11-21 10:00:00,123 - INFO - ",
    "\\u0000",
    "\\ud800",
    " ",
    "\r",
    "_bytes\":",
    "\"v\":2",
    "\"round\":",
    "1.5",
];

fn noise() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        6 => prop::sample::select(PIECES).prop_map(|piece| piece.as_bytes().to_vec()),
        2 => (prop::sample::select(PIECES), any::<prop::sample::Index>())
            .prop_map(|(piece, end)| piece.as_bytes()[..end.index(piece.len())].to_vec()),
        1 => prop::collection::vec(any::<u8>().prop_filter("one line", |byte| *byte != b'\n'), 0..12),
    ];
    prop::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_line_is_read_to_its_end(bytes in noise(), whole in any::<bool>()) {
        let read = line::read(&bytes, whole);
        prop_assert!(read.samples.len() <= bytes.len());
        prop_assert!(read.broken.is_none_or(|why| !why.is_empty()));
    }

    #[test]
    fn a_record_behind_any_prefix_of_a_log_is_found(prefix in "[ -z|~]{0,60}") {
        let bytes = format!("{prefix}{RECORD}");
        prop_assert_eq!(line::read(bytes.as_bytes(), true).samples.len(), 1, "{}", bytes);
    }

    #[test]
    fn any_answer_of_a_process_is_statistics_or_an_error(bytes in noise()) {
        let text = String::from_utf8_lossy(&bytes);
        if let Ok(stats) = Stats::parse(&text) {
            let _ = (stats.number("rss_bytes"), stats.text("alloc"));
        }
    }
}
