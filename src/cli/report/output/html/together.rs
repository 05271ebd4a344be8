//! The beginning of the page: where the memory of all processes went. One chart, one sentence, the
//! sites, and the facts about the runs.

use std::collections::BTreeMap;

use maud::{html, Markup};

use super::{number, short, table, verdict_badges};
use crate::report::analyse::{Group, Grouping, ProcessReport, Together};
use crate::report::calendar::{range, time_of_day};
use crate::report::explain;
use crate::report::model::Process;
use crate::report::output::chart;
use crate::report::units::{duration, plural, signed_size, size};

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
        @if all.grouping == Grouping::Sites { (sites(all, reports)) }
    }
}

fn sites(all: &Together, reports: &[ProcessReport]) -> Markup {
    let rows = html! {
        @for (group, colour) in all.groups.iter().zip(chart::colours(all)) { (site(all, reports, colour, group)) }
    };
    let caption = "Sum of the processes of each site, the highest peak first";
    let words = ["Worst verdict", "Site"];
    let numbers = [
        "Processes",
        "Peak",
        "Part of the peak of all",
        "Peak at",
        "Mean",
        "Limit",
        "Growth per round",
    ];
    html! {
        section aria-labelledby="site" {
            h2 id="site" { "Sites" }
            (table("site", caption, &words, &numbers, &rows))
        }
    }
}

fn site(all: &Together, reports: &[ProcessReport], colour: &str, group: &Group) -> Markup {
    let members = || group.members.iter().map(|member| &reports[*member]);
    let processes: u64 = members()
        .map(|report| report.process.processes.max(1))
        .sum();
    let limits = members().map(|report| report.process.cgroup_limit);
    let share = 100.0 * group.at_peak / all.peak.max(1.0);
    html! {
        tr data-site=(group.name) {
            td { (worst(members().collect())) }
            th scope="row" { span class={ "swatch " (colour) } {} (short(&group.name)) }
            td.n { (processes) }
            (number(group.peak, size))
            td.n { (format!("{share:.1} %")) }
            (number(group.peak_time, time_of_day))
            (number(group.mean, size))
            (number(limits.fold(f64::NAN, f64::min), size))
            (number(group.growth, signed_size))
        }
    }
}

/// The most urgent verdict of some processes, and how many have it.
fn worst(all: Vec<&ProcessReport>) -> Markup {
    let urgency =
        |report: &&&ProcessReport| (!report.is_killed(), report.finding.verdict.urgency());
    let Some(worst) = all.iter().min_by_key(urgency) else {
        return Markup::default();
    };
    let is_like = |report: &&&ProcessReport| report.verdict_name() == worst.verdict_name();
    let count = all.iter().filter(is_like).count();
    html! { (verdict_badges(worst)) @if count < all.len() { " " (count) " of " (all.len()) } }
}

/// Time, machines, versions, allocators and settings.
pub fn facts(all: Option<&Together>, reports: &[ProcessReport]) -> Markup {
    let time = all.map_or(String::new(), |all| {
        let length = duration(all.end - all.start);
        format!("{} UTC ({length})", range(all.start, all.end))
    });
    let processes = || reports.iter().map(|report| &report.process);
    let counted =
        |of: fn(&Process) -> Option<&str>| counts(processes().filter_map(of), reports.len());
    let settings = || processes().filter_map(|process| process.settings.as_deref());
    let words = settings().flat_map(|settings| settings.split_ascii_whitespace());
    let mut changed = counts(words, reports.len());
    if changed.is_empty() && settings().next().is_some() {
        changed = "all at their defaults".to_owned();
    }
    let rows = [
        ("Time", time),
        ("Host", counted(|process| process.host.as_deref())),
        ("flarena", counted(|process| process.version.as_deref())),
        ("Allocator", counted(|process| process.alloc.as_deref())),
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

/// `glibc`, or `glibc (3 of 7 processes), jemalloc (4 of 7 processes)`; empty if nothing is known.
fn counts<'a>(values: impl Iterator<Item = &'a str>, processes: usize) -> String {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    let mut counts: Vec<(&str, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let named = |(value, count): &(&str, u64)| match *count as usize == processes {
        true => (*value).to_owned(),
        false => format!("{value} ({count} of {processes} processes)"),
    };
    let more = counts.len().saturating_sub(MAX_NAMED);
    let named: Vec<String> = counts.iter().take(MAX_NAMED).map(named).collect();
    match more {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}
