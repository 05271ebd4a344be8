//! Whatever a marker file or a log holds.

use serde_json::Value;

use super::output::{html, json, print, prometheus};
use super::{analyse, read};
use crate::report::output::Limits;

/// It is read, judged and shown in every form, and nothing of it reaches a terminal or a program as more than text.
pub fn any_log(input: &[u8]) {
    let (processes, file) = read::read_bytes(input);
    let reports = analyse::analyse(processes);
    let limits = Limits { all: true };
    let shown = print::report(&reports, &limits);
    let messages = file.messages.iter().map(|(_, text)| &text[..]);
    let mut printed = shown.lines().chain(messages);
    assert!(printed.all(|line| !line.contains(char::is_control)));
    let mut written = Vec::new();
    json::write(&mut written, &reports, std::slice::from_ref(&file)).unwrap();
    let value: Value = serde_json::from_slice(&written).expect("the report is JSON");
    assert_eq!(value["processes"].as_array().unwrap().len(), reports.len());
    for line in prometheus::metrics(&reports).lines() {
        let value = line.rsplit(' ').next().unwrap_or_default();
        assert!(
            line.starts_with('#') || value.parse::<f64>().is_ok(),
            "{line}"
        );
    }
    let page = html::page(&reports, &[file], &limits);
    let scripts = page.matches("<script").count();
    assert_eq!(scripts, 1, "a script of somebody else's");
}
