//! Property tests: arbitrary input, such as damaged records and noise, never stops the reading.

use flarena_shared::marker::Marker;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;

use super::super::line::{self, Part};
use super::read_from_memory;
use crate::control::Stats;
use crate::report::analyse::fixtures::{analyse, processes};
use crate::report::analyse::{findings, requests};
use crate::report::output::{html, json, print, prometheus, ListLength};

const RECORD: &str = r#"{"v":1,"t":1763619820.5,"pid":123,"ppid":1,"start":9,"proc":"TR","stage":"send","alloc":"glibc","rss_bytes":1048576,"seq":17}"#;
/// Lines are built from these: records, parts of records, and text that resembles a record.
const PARTS: &[&str] = &[
    RECORD,
    r#"{"log":"{\"v\":1,\"pid\":9,\"stage\":\"send\",\"rss_bytes\":1048576}\n"}"#,
    "2026-11-20 06:32:47,250 - x - [RSS] CA s=site-1 r=2 send: 87.8 MB",
    "[RSS] a s=b r=c d: 1e308 MB",
    "99999999999999999999",
    "\"rss_bytes\":",
    "\"message\":",
    "\"stage\":",
    "\"round\":",
    "_bytes\":",
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
    "\"send\"",
    "null",
    "true",
    "\"log\":",
    "\"msg\":",
    "\\u0000",
    "\\ud800",
    " ",
    "\r",
    "\"v\":2",
    "1.5",
];

/// The fuzz target of the report. Reads any input, judges it, and checks every output: no control characters on the terminal, valid
/// JSON and metrics, and no injected script on the page.
pub fn any_log(input: &[u8]) {
    let (processes, file) = read_from_memory(input);
    let findings = findings(&processes, None, |_| true);
    let requests = requests(&findings, Some(100));
    let text = print::report(&findings, &requests, ListLength::Full);
    let files = [file];
    let messages = files[0].messages.iter().map(String::as_str);
    let mut printed = text.lines().chain(messages);
    assert!(printed.all(|line| !line.contains(char::is_control)));
    let mut written = Vec::new();
    json::write(&mut written, &findings, &files, &requests).unwrap();
    let value: Value = serde_json::from_slice(&written).expect("the report is JSON");
    assert_eq!(value["processes"].as_array().unwrap().len(), findings.len());
    for line in prometheus::metrics(&findings).lines() {
        let value = line.rsplit(' ').next().unwrap_or_default();
        let is_number = value.parse::<f64>().is_ok();
        assert!(line.starts_with('#') || is_number, "{line}");
        assert!(!line.contains(char::is_control), "{line:?}");
    }
    let page = html::page(&findings, &files, ListLength::Full);
    let scripts = page.matches("<script").count();
    assert_eq!(scripts, 1, "the page has an injected script");
}

fn byte() -> impl Strategy<Value = u8> {
    any::<u8>().prop_filter("no newline", |byte| *byte != b'\n')
}

/// Parts that are intact, truncated or changed in one byte, and random bytes.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let part = || prop::sample::select(PARTS).prop_map(|part| part.as_bytes().to_vec());
    let place = any::<Index>;
    let one = prop_oneof![
        6 => part(),
        2 => (part(), place()).prop_map(|(part, end)| part[..end.index(part.len())].to_vec()),
        2 => (part(), place(), byte()).prop_map(|(mut part, at, byte)| {
            let at = at.index(part.len());
            part[at] = byte;
            part
        }),
        1 => prop::collection::vec(byte(), 0..12),
    ];
    prop::collection::vec(one, 0..16).prop_map(|parts| parts.concat())
}

/// At an index, some bytes are replaced by others.
type Change = (Index, usize, Vec<u8>);

fn changes(max: usize) -> impl Strategy<Value = Vec<Change>> {
    let new = prop::collection::vec(byte(), 0..4);
    prop::collection::vec((any::<Index>(), 0..4_usize, new), 0..=max)
}

fn damaged(mut bytes: Vec<u8>, changes: &[Change]) -> Vec<u8> {
    for (at, removed, new) in changes {
        let at = at.index(bytes.len());
        bytes.splice(at..bytes.len().min(at + removed), new.iter().copied());
    }
    bytes
}

/// One record per line for each of `count` rounds.
fn rounds(count: usize) -> Vec<u8> {
    let line = |round: usize| {
        let (size, numbers) = (round << 20, format!("\"round\":{round},\"seq\":{round}"));
        let record = RECORD.replace("1048576", &size.to_string());
        record.replace("\"seq\":17", &numbers) + "\n"
    };
    (1..=count).map(line).collect::<String>().into_bytes()
}

fn markers(parts: Vec<Part>) -> impl Iterator<Item = Marker> {
    parts.into_iter().filter_map(|part| match part {
        Part::Marker(marker) => Some(*marker),
        Part::Error(error) => {
            assert!(!error.is_empty());
            None
        }
        Part::Memory(_) | Part::Sites(_) => None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn any_line_is_read_without_a_panic(
        bytes in prop_oneof![
            noise(),
            changes(5).prop_map(|changes| damaged(RECORD.into(), &changes)),
        ],
        end in prop_oneof![Just("\n"), Just("")],
    ) {
        let parts = line::parts(&[&bytes, end.as_bytes()].concat());
        prop_assert!(parts.len() <= bytes.len());
        findings(&processes(markers(parts)), None, |_| true);
    }

    #[test]
    fn a_record_after_any_log_prefix_is_found(prefix in "[ -z|~]{0,60}") {
        let bytes = format!("{prefix}{RECORD}");
        let parts = line::parts(bytes.as_bytes());
        prop_assert_eq!(markers(parts).count(), 1, "{}", bytes);
    }

    #[test]
    fn any_reply_of_a_process_parses_as_statistics_or_an_error(bytes in noise()) {
        let text = String::from_utf8_lossy(&bytes);
        if let Ok(stats) = Stats::parse(&text) {
            let _ = (stats.number("rss_bytes"), stats.text("alloc"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn damage_affects_only_the_lines_that_it_touches(count in 5..30_usize, changes in changes(12)) {
        let (processes, file) = read_from_memory(&damaged(rounds(count), &changes));
        let kept = file.markers as usize + 2 * changes.len();
        prop_assert!(kept >= count, "{} of {count} markers", file.markers);
        let findings = analyse(processes);
        prop_assert!(!changes.is_empty() || findings[0].series.rounds as usize == count);
    }
}
