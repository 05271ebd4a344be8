//! The beginning of the page: where the memory of all processes went. One chart, one sentence, and the facts about the
//! runs.

use std::collections::BTreeSet;

use maud::{html, Markup};

use crate::report::analyse::{ProcessReport, Together};
use crate::report::calendar::range;
use crate::report::explain;
use crate::report::model::Process;
use crate::report::output::chart;
use crate::report::units::{duration, plural};

/// More values are counted.
const MAX_NAMED: usize = 3;

pub fn section(all: &Together, reports: &[ProcessReport]) -> Markup {
    html! {
        section aria-labelledby="whole" {
            h2 id="whole" { "Where the memory went" }
            p.evidence { (explain::together(all, reports.len())) }
            @if let Some(chart) = chart::together(all) { (chart.figure()) }
            @if all.undated > 0 {
                p.facts { "Not counted: " (plural(all.undated as u64, "process")) " without times." }
            }
        }
    }
}

/// Time, machines, versions, allocators and settings.
pub fn facts(all: Option<&Together>, reports: &[ProcessReport]) -> Markup {
    let time = all.map_or(String::new(), |all| {
        let length = duration(all.end - all.start);
        format!("{} UTC ({length})", range(all.start, all.end))
    });
    let processes = || reports.iter().map(|report| &report.process);
    let named = |of: fn(&Process) -> Option<&str>| distinct(processes().filter_map(of));
    let settings = || processes().filter_map(|process| process.settings.as_deref());
    let words = settings().flat_map(|settings| settings.split_ascii_whitespace());
    let mut changed = distinct(words);
    if changed.is_empty() && settings().next().is_some() {
        changed = "all at their defaults".to_owned();
    }
    let rows = [
        ("Time", time),
        ("Host", named(|process| process.host.as_deref())),
        ("flarena", named(|process| process.version.as_deref())),
        ("Allocator", named(|process| process.alloc.as_deref())),
        ("Settings", changed),
    ];
    html! {
        dl.run {
            @for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
                dt { (name) }
                dd { (value) }
            }
        }
    }
}

/// `glibc, jemalloc`, or `node-1, node-2, node-3 and 4 more`; empty if nothing is known.
fn distinct<'a>(values: impl Iterator<Item = &'a str>) -> String {
    let values: Vec<&str> = values.collect::<BTreeSet<_>>().into_iter().collect();
    match values.split_at_checked(MAX_NAMED) {
        Some((named, more)) if !more.is_empty() => {
            format!("{} and {} more", named.join(", "), more.len())
        }
        _ => values.join(", "),
    }
}
