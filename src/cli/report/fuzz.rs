//! The fuzz target of the report.

use serde_json::Value;

use super::output::{html, json, print, prometheus, ListLength};
use super::{analyse, read};

/// Reads any input, judges it, and checks every output: no control characters on the terminal, valid
/// JSON and metrics, and no injected script on the page.
pub fn any_log(input: &[u8]) {
    let (processes, file) = read::tests::read_from_memory(input);
    let findings = analyse::findings(&processes, None, |_| true);
    let requests = analyse::requests(&findings, Some(100));
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
