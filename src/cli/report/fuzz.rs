//! The fuzz target of the report.

use serde_json::Value;

use super::output::{html, json, print, prometheus, ListLength};
use super::{analyse, judge, read};

/// Reads any input, judges it, and checks every output: no control characters on the terminal, valid
/// JSON and metrics, and no injected script on the page.
pub fn any_log(input: &[u8]) {
    let (processes, file) = read::tests::read_from_memory(input);
    let reports = judge(processes, None, |_| true);
    let requests = analyse::requests(&reports, Some(100));
    let text = print::report(&reports, &requests, ListLength::Full);
    let files = [file];
    let messages = files[0].messages.iter().map(|(_, text)| &text[..]);
    let mut printed = text.lines().chain(messages);
    assert!(printed.all(|line| !line.contains(char::is_control)));
    let mut written = Vec::new();
    json::write(&mut written, &reports, &files, &requests).unwrap();
    let value: Value = serde_json::from_slice(&written).expect("the report is JSON");
    assert_eq!(value["processes"].as_array().unwrap().len(), reports.len());
    for line in prometheus::metrics(&reports).lines() {
        let value = line.rsplit(' ').next().unwrap_or_default();
        let is_number = value.parse::<f64>().is_ok();
        assert!(line.starts_with('#') || is_number, "{line}");
        assert!(!line.contains(char::is_control), "{line:?}");
    }
    let page = html::page(&reports, &files, ListLength::Full);
    let scripts = page.matches("<script").count();
    assert_eq!(scripts, 1, "the page has an injected script");
}
