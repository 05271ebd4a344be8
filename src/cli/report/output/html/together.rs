//! The beginning of the page: where the memory of all processes went. One chart, one sentence, the
//! sites, and the facts about the runs.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::parts::{badge, heads, kill_mark, number, table_start};
use crate::report::analyse::{Group, Grouping, ProcessReport, Together, Verdict};
use crate::report::calendar::{range, time_of_day};
use crate::report::explain;
use crate::report::output::chart::{self, escaped};
use crate::report::units::{duration, plural, signed_size, size};

/// Sizes of the chart on a page and on a phone, where text must stay readable.
const WIDE: (f64, f64) = (1240.0, 380.0);
const NARROW: (f64, f64) = (350.0, 300.0);
/// More values are counted.
const MAX_NAMED: usize = 3;

pub fn section(out: &mut String, all: &Together, reports: &[ProcessReport]) {
    *out += "<section aria-labelledby=\"whole\">\n<h2 id=\"whole\">Where the memory went</h2>\n";
    for sentence in explain::together(all, reports) {
        let _ = writeln!(out, "<p class=\"evidence\">{}</p>", escaped(&sentence));
    }
    for (class, id, dimensions) in [("page", "all", WIDE), ("phone", "all-narrow", NARROW)] {
        if let Some(chart) = chart::together(all, id, dimensions) {
            let _ = write!(out, "<figure class=\"on-{class}\">\n{chart}</figure>\n");
        }
    }
    if all.undated > 0 {
        let undated = plural(all.undated as u64, "process");
        let _ = writeln!(
            out,
            "<p class=\"facts\">Not counted: {undated} without times.</p>"
        );
    }
    *out += "</section>\n";
    if all.grouping == Grouping::Sites {
        sites(out, all, reports);
    }
}

fn sites(out: &mut String, all: &Together, reports: &[ProcessReport]) {
    *out += "<section aria-labelledby=\"sites\">\n<h2 id=\"sites\">Sites</h2>\n";
    *out += &table_start(
        "sites",
        "site-table",
        "Sum of the processes of each site, the highest peak first",
    );
    *out += &heads(
        &["Worst verdict", "Site"],
        &[
            "Processes",
            "Peak",
            "Part of the peak of all",
            "Peak at",
            "Mean",
            "Limit",
            "Growth per round",
        ],
    );
    for (group, colour) in all.groups.iter().zip(chart::colours(all)) {
        site(out, all, reports, colour, group);
    }
    *out += "</tbody>\n</table>\n</div>\n</section>\n";
}

fn site(out: &mut String, all: &Together, reports: &[ProcessReport], colour: &str, group: &Group) {
    let members = || group.members.iter().map(|member| &reports[*member]);
    let processes: u64 = members()
        .map(|report| report.process.processes.max(1))
        .sum();
    let limits = members().map(|report| report.process.cgroup_limit);
    let _ = writeln!(
        out,
        "<tr data-site=\"{name}\"><td>{}</td><th scope=\"row\"><span class=\"swatch {colour}\"></span>{name}</th>\
         <td class=\"n\">{processes}</td>{}<td class=\"n\">{:.1} %</td>\
         <td class=\"n\" data-v=\"{:.0}\">{}</td>{}{}{}</tr>",
        worst(members()),
        number(group.peak, size),
        100.0 * group.at_peak / all.peak.max(1.0),
        group.peak_time,
        time_of_day(group.peak_time),
        number(group.mean, size),
        number(limits.fold(f64::NAN, f64::min), size),
        number(group.growth, signed_size),
        name = escaped(&group.name),
    );
}

/// The most urgent verdict of some processes, and how many have it.
fn worst<'a>(reports: impl Iterator<Item = &'a ProcessReport> + Clone) -> String {
    let all = reports.clone().count();
    let killed = reports.clone().filter(|report| report.is_killed()).count();
    let verdicts = reports.clone().map(|report| report.finding.verdict);
    let worst = verdicts.min_by_key(|verdict| verdict.urgency());
    let worst = worst.unwrap_or(Verdict::NotEnoughRounds);
    let with_it = reports
        .filter(|report| report.finding.verdict == worst)
        .count();
    let (badge, count) = match killed {
        0 => (badge(worst), with_it),
        _ => (kill_mark(), killed),
    };
    match count == all {
        true => badge,
        false => format!("{badge} {count} of {all}"),
    }
}

/// Time, machines, versions, allocators and settings.
pub fn facts(out: &mut String, all: Option<&Together>, reports: &[ProcessReport]) {
    let mut rows: Vec<(&str, String)> = Vec::new();
    if let Some(all) = all {
        let length = duration(all.end - all.start);
        rows.push((
            "Time",
            format!("{} UTC ({length})", range(all.start, all.end)),
        ));
    }
    let processes = || reports.iter().map(|report| &report.process);
    let counted = |values: Vec<Option<&str>>| counts(values, reports.len());
    rows.push((
        "Host",
        counted(processes().map(|p| p.host.as_deref()).collect()),
    ));
    rows.push((
        "flarena",
        counted(processes().map(|p| p.version.as_deref()).collect()),
    ));
    rows.push((
        "Allocator",
        counted(processes().map(|p| p.alloc.as_deref()).collect()),
    ));
    let settings = || processes().filter_map(|p| p.settings.as_deref());
    let changed = counts(
        settings()
            .flat_map(|s| s.split(' ').map(Some))
            .filter(|s| *s != Some(""))
            .collect(),
        reports.len(),
    );
    rows.push((
        "Settings",
        match changed.is_empty() {
            true if settings().next().is_some() => "all at their defaults".to_owned(),
            _ => changed,
        },
    ));
    *out += "<dl class=\"run\">\n";
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = writeln!(out, "<dt>{name}</dt><dd>{}</dd>", escaped(value));
    }
    *out += "</dl>\n";
}

/// `glibc`, or `glibc (3 of 7 processes), jemalloc (4 of 7 processes)`; empty if nothing is known.
fn counts(values: Vec<Option<&str>>, processes: usize) -> String {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for value in values.into_iter().flatten() {
        *counts.entry(value).or_default() += 1;
    }
    let mut counts: Vec<(&str, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let named =
        counts
            .iter()
            .take(MAX_NAMED)
            .map(|(value, count)| match *count as usize == processes {
                true => (*value).to_owned(),
                false => format!("{value} ({count} of {processes} processes)"),
            });
    let named: Vec<String> = named.collect();
    match counts.len().saturating_sub(MAX_NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}
