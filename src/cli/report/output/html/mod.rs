//! Writes the report as one self-contained page, without anything loaded from elsewhere.
//!
//! The numbers of each process are in tables beside its charts. A small script sorts and filters; without it the
//! page is complete. `maud` escapes all text from files.

use maud::{html, Markup, PreEscaped, DOCTYPE};

use super::{chart, print, ListLength, CHARTED_PROCESSES, PAGE_ROWS};
use crate::report::analyse::{Finding, Together, Verdict};
use crate::report::explain;
use crate::report::model::SiteHistory;
use crate::report::read::FileReport;
use crate::report::sites::{explanation, trends, FRAMES};
use crate::report::units::{plural, size, time_of_day};

/// Of the first processes those that are not flat are unfolded.
const OPEN_PROCESSES: usize = 3;
/// Allocation sites of a process whose stacks are shown.
const MAX_STACKS: usize = 12;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const TERMS: &str = include_str!("terms.html");

pub fn page(findings: &[Finding], files: &[FileReport], length: ListLength) -> String {
    let (listed, unlisted) = length.split(findings, PAGE_ROWS);
    let (drawn, undrawn) = length.split(findings, CHARTED_PROCESSES);
    let all = Together::of(findings);
    let markers: u64 = files.iter().map(|file| file.markers).sum();
    let is_open = |i: usize, finding: &Finding| {
        let is_flat = finding.verdict_name() == Verdict::Flat.name();
        i < OPEN_PROCESSES && (drawn.len() == 1 || !is_flat)
    };
    document(
        "flarena report",
        &html! {
            header {
                h1 { "Memory report" }
                p { (print::summary(findings)) "; " (markers) " markers, " (plural(files.len() as u64, "file")) }
            }
            main {
                @if let Some(all) = &all { (together(all)) }
                (overview(listed, drawn.len()))
                @for (i, finding) in drawn.iter().enumerate() { (process(finding, i, is_open(i, finding))) }
                @if undrawn > 0 {
                    p {
                        (plural(undrawn as u64, "more process")) " without charts"
                        @if unlisted > 0 { ", " (unlisted) " of them without a row of the table" }
                        ": use --all"
                    }
                }
            }
            (PreEscaped(TERMS))
            script { (PreEscaped(SCRIPT)) }
        },
    )
}

/// A whole page. Control characters in names from files are replaced.
pub fn document(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "flarena " (flarena_shared::VERSION) };
                title { (title) }
                style { (PreEscaped(chart::STYLE)) (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    };
    page.into_string()
        .replace(|c: char| c.is_control() && c != '\n', "\u{fffd}")
}

/// Where the memory of all processes went.
fn together(all: &Together) -> Markup {
    html! {
        section {
            h2 { "Where the memory went" }
            p.evidence { (most(all)) }
            @if let Some(chart) = chart::together(all) { (chart.figure()) }
            @if all.undated > 0 {
                p.facts { "Not counted: " (plural(all.undated as u64, "process")) " without times." }
            }
        }
    }
}

fn most(all: &Together) -> String {
    let (peak, mean) = (all.sum.peak, size(all.sum.mean));
    let limit = all.limit.map_or(String::new(), |limit| {
        let percent = 100.0 * peak / limit;
        format!(" ({percent:.0}\u{a0}% of the limit of {})", size(limit))
    });
    let (held, time) = (size(peak), time_of_day(all.sum.peak_time));
    format!(
        "By the markers, at most {held}{limit} were in use, at {time} UTC, and {mean} on average."
    )
}

/// The word of the tables. The style sheet gives each class a colour and a sign; the word alone is sufficient for a reader
/// who sees neither.
fn badge(finding: &Finding) -> Markup {
    let verdict = finding.verdict;
    let class = match () {
        () if finding.is_killed() => "bad killed",
        () if verdict.is_growth() => "bad",
        () if verdict.is_undecided() || verdict == Verdict::NotEnoughRounds => "open",
        () => "good",
    };
    html! { span class={ "badge " (class) } { (finding.verdict_name()) } }
}

/// The table of the text, with links to the processes that are drawn.
fn overview(findings: &[Finding], drawn: usize) -> Markup {
    let cell = |row: usize, column: usize, text: &str| match column {
        0 => badge(&findings[row]),
        2 if row < drawn => html! { a href={ "#p" (row) } { (text) } },
        _ => html! { (text) },
    };
    html! {
        section id="processes" {
            h2 { "Processes" }
            (print::overview(findings).page("All processes, those that need attention first", 1, cell))
        }
    }
}

fn process(finding: &Finding, i: usize, is_open: bool) -> Markup {
    let process = finding.process;
    let version = process.version.as_ref();
    let version = version.map(|version| format!("flarena {version}"));
    let more = [process.host.clone(), version, process.settings.clone()];
    let mut facts = explain::facts(finding);
    facts.extend(more.into_iter().flatten());
    html! {
        article id={ "p" (i) } {
            details open[is_open] {
                summary { h2 { (process.full_name()) " " (badge(finding)) } }
                p.facts { (facts.join(" \u{b7} ")) }
                p.evidence { (explain::evidence(finding)) }
                @if let Some(remedy) = explain::remedy(finding) {
                    p.remedy { b { "What to do:" } " " (with_code(&remedy)) "." }
                }
                div.charts role="group" aria-label=(process.full_name()) {
                    @if let Some(chart) = chart::rounds(finding) { (chart.figure()) }
                    (chart::stages(finding))
                }
                @let caption = format!("RSS at each stage of {}", process.full_name());
                (print::stages(finding).page(&caption, 0, |_, _, text| html! { (text) }))
                @if let Some(line) = explanation(&process.allocation_sites, finding.verdict) {
                    p.evidence { (line) }
                }
                (stacks(&process.allocation_sites))
            }
        }
    }
}

/// The whole stack of each allocation site to unfold.
fn stacks(history: &SiteHistory) -> Markup {
    html! {
        @for one in trends(history).iter().take(MAX_STACKS) {
            details {
                summary { (size(one.last_bytes as f64)) " " (history.headline(one.site, FRAMES)) }
                ol.stack {
                    @for frame in history.stacks.get(&one.site).iter().flat_map(|stack| &stack.frames) {
                        li { (frame.0) ":" (frame.1) " in " (frame.2) }
                    }
                }
            }
        }
    }
}

/// Backquoted text becomes `<code>`.
fn with_code(text: &str) -> Markup {
    html! {
        @for (i, part) in text.split('`').enumerate() {
            @if i % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::{analyse, processes, sample, sizes};
    use crate::report::model::site_history_tests::growing as history;
    use crate::report::model::Size;
    use flarena_shared::marker::Marker;

    #[test]
    fn rows_and_charts_name_their_process() {
        let marker = |round: usize| sample(round, sizes(&[(Size::Rss, 59.0)]));
        let findings = analyse(processes((0..12).map(marker)));
        let table = overview(&findings, 1).into_string();
        assert!(table.contains("<th scope=\"row\">site-1</th>"), "{table}");
        assert!(table.contains("<a href=\"#p0\">TR</a>"), "{table}");
        assert!(!table.contains("class=\"\""), "{table}");
        let charts = process(&findings[0], 0, true).into_string();
        let group = "role=\"group\" aria-label=\"site-1 TR, pid 7\"";
        assert!(charts.contains(group), "{charts}");
        let label = "aria-label=\"Over rounds, at send: RSS\"";
        assert!(charts.contains(label), "{charts}");
    }

    #[test]
    fn the_page_begins_with_the_peak_and_the_mean() {
        let marker = |round: usize| sample(round, sizes(&[(Size::Rss, 59.0)]));
        let findings = analyse(processes((0..12).map(marker)));
        assert_eq!(
            most(&Together::of(&findings).unwrap()),
            "By the markers, at most 59.0 MB were in use, at 00:00:00 UTC, and 59.0 MB on average."
        );
    }

    #[test]
    fn each_allocation_site_has_its_whole_stack() {
        let section = stacks(&history(&[1, 2, 3, 4, 5, 6].map(|n| n << 26))).into_string();
        let parts = [
            "<summary>384.0 MB fedavg.py:351 in aggregate",
            "/x/fedavg.py:351 in FedAvg.aggregate",
        ];
        for part in parts {
            assert!(section.contains(part), "{part}: {section}");
        }
        assert_eq!(stacks(&SiteHistory::default()).into_string(), "");
    }

    #[test]
    fn facts_end_in_the_version_if_all_settings_have_their_defaults() {
        let marker = |round: usize| Marker {
            version: Some("0.1.0".into()),
            settings: Some(String::new()),
            ..sample(round, sizes(&[(Size::Rss, 59.0)]))
        };
        let findings = analyse(processes((0..12).map(marker)));
        let text = process(&findings[0], 0, true).into_string();
        assert!(text.contains(" \u{b7} flarena 0.1.0</p>"), "{text}");
    }

    #[test]
    fn backquoted_text_becomes_code() {
        assert_eq!(with_code("plain").into_string(), "plain");
        assert_eq!(
            with_code("try `a < b`, then `c`").into_string(),
            "try <code>a &lt; b</code>, then <code>c</code>"
        );
    }
}
