//! Whatever a marker file or a log holds.

use serde_json::Value;

use super::limits::Limits;
use super::{analysis, html, json, print, prometheus, read};

/// It is read, judged and shown in every form, and nothing of it reaches a terminal or a program as more than text.
pub fn any_log(input: &[u8]) {
    let (processes, file) = read::read_bytes(input);
    let reports = analysis::analyse(processes);
    let limits = Limits { all: true };
    let shown = print::report(&reports, &limits);
    let mut printed = shown
        .lines()
        .chain(file.messages.iter().map(|m| &m.text[..]));
    assert!(printed.all(|line| !line.contains(char::is_control)));
    let mut written = Vec::new();
    json::write(&mut written, &reports, std::slice::from_ref(&file)).unwrap();
    let value: Value = serde_json::from_slice(&written).expect("the report is JSON");
    assert_eq!(value["processes"].as_array().unwrap().len(), reports.len());
    for line in prometheus::metrics(&reports).lines() {
        let is_value = |text: &str| text.parse::<f64>().is_ok();
        assert!(
            line.starts_with('#') || line.rsplit(' ').next().is_some_and(is_value),
            "{line}"
        );
    }
    let page = html::page(&reports, &[file], &limits);
    assert_eq!(
        page.matches("<script").count(),
        1,
        "a script of somebody else's"
    );
}
