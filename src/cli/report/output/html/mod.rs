//! Writes the report as one self-contained page, without anything loaded from elsewhere.
//!
//! The numbers of each process are in tables beside its charts. A small script sorts and filters; without it the
//! page is complete. `maud` escapes all text from files.

mod sites;
mod together;

use maud::{html, Markup, PreEscaped, DOCTYPE};

use super::chart::{self, short};
use super::{ListLength, CHARTED_PROCESSES, PAGE_ROWS};
use crate::report::analyse::stats::Slope;
use crate::report::analyse::{count_verdicts, ProcessReport, Together, Verdict, KILLED};
use crate::report::explain;
use crate::report::read::{message_about_repeated_markers, FileReport};
use crate::report::sites::explanation;
use crate::report::units::{or_dash, plural, range, signed_size, size, Amount};

/// Processes whose charts are unfolded: the first ones that are not flat.
const OPEN_PROCESSES: usize = 3;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const TERMS: &str = include_str!("terms.html");

pub fn page(reports: &[ProcessReport], files: &[FileReport], length: ListLength) -> String {
    let (listed, unlisted) = length.split(reports, PAGE_ROWS);
    let (drawn, undrawn) = length.split(reports, CHARTED_PROCESSES);
    let all = Together::of(reports);
    let is_loud = |i: &usize| {
        let report = &drawn[*i];
        drawn.len() == 1 || report.finding.verdict != Verdict::Flat || report.is_killed()
    };
    let loud = (0..drawn.len()).filter(is_loud).take(OPEN_PROCESSES);
    let open: Vec<usize> = loud.collect();
    document(
        "flarena report",
        &html! {
            (header(all.as_ref(), reports, files))
            main {
                @if let Some(all) = &all { (together::section(all, reports)) }
                (overview(listed, drawn.len()))
                @for (i, report) in drawn.iter().enumerate() { (process(report, i, open.contains(&i))) }
                @if undrawn > 0 {
                    p {
                        (undrawn) " more processes have no charts, and " (unlisted) " of them are not in the table; "
                        "--all shows them."
                    }
                }
                (messages(files))
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

fn header(all: Option<&Together>, reports: &[ProcessReport], files: &[FileReport]) -> Markup {
    let markers: u64 = files.iter().map(|file| file.markers).sum();
    let killed = reports.iter().filter(|report| report.is_killed()).count();
    html! {
        header {
            h1 { "Memory report" }
            p { (plural(reports.len() as u64, "process")) ", " (markers) " markers, " (plural(files.len() as u64, "file")) }
            ul.tally {
                @if killed > 0 { li { (kill_mark()) " " b { (killed) } } }
                @for (verdict, count) in count_verdicts(reports) { li { (badge(verdict)) " " b { (count) } } }
            }
            (together::facts(all, reports))
        }
    }
}

/// The verdict with a sign and a colour. The word alone is sufficient for a reader who sees neither.
fn badge(verdict: Verdict) -> Markup {
    let (class, sign) = match verdict {
        Verdict::Flat => ("good", "\u{25cf}"),
        Verdict::NotEnoughRounds => ("open", "\u{25cb}"),
        Verdict::Falling => ("good", "\u{25bc}"),
        Verdict::CyclicGarbage => ("good", "\u{21bb}"),
        Verdict::Unclear => ("open", "?"),
        Verdict::WarmingUp => ("open", "\u{25d4}"),
        Verdict::Swap => ("bad", "\u{21c4}"),
        Verdict::LiveGrowth | Verdict::Retention | Verdict::Growth | Verdict::FileBacked => {
            ("bad", "\u{25b2}")
        }
    };
    mark(class, sign, verdict.name())
}

/// A sign for a process that the kernel most likely killed.
fn kill_mark() -> Markup {
    mark("bad", "\u{2716}", KILLED)
}

fn mark(class: &str, sign: &str, name: &str) -> Markup {
    html! { span class={ "badge " (class) } { span aria-hidden="true" { (sign) } " " (name) } }
}

/// The verdict, after a sign for a process that the kernel most likely killed.
fn verdict_badges(report: &ProcessReport) -> Markup {
    html! { @if report.is_killed() { (kill_mark()) " " } (badge(report.finding.verdict)) }
}

/// A table that a click on a heading sorts. A narrow screen scrolls it. Columns of words come first.
pub fn table(id: &str, caption: &str, words: &[&str], numbers: &[&str], rows: &Markup) -> Markup {
    html! {
        div.wide role="region" aria-label=(caption) tabindex="0" {
            table.sortable id={ (id) "-table" } {
                caption { (caption) }
                thead {
                    tr {
                        @for head in words { th scope="col" { (head) } }
                        @for head in numbers { th.n scope="col" { (head) } }
                    }
                }
                tbody { (rows) }
            }
        }
    }
}

/// A cell that is sorted by its value instead of its text.
fn number(value: f64, format: fn(f64) -> String) -> Markup {
    let key = Some(value).filter(|value| value.is_finite());
    let key = key.map_or(String::new(), |value| format!("{value:.0}"));
    html! { td.n data-v=(key) { (format(value)) } }
}

fn overview(reports: &[ProcessReport], drawn: usize) -> Markup {
    let rows = html! {
        @for (i, report) in reports.iter().enumerate() {
            @let process = &report.process;
            @let pid = process.pid.map(|pid| format!(" {pid}")).unwrap_or_default();
            @let name = short(&format!("{}{pid}", report.process_name()));
            tr data-text=(report.full_name()) {
                td { (verdict_badges(report)) }
                th scope="row" { (short(&process.site_names())) }
                td { @if i < drawn { a href={ "#p" (i) } { (name) } } @else { (name) } }
                td.n { (report.finding.rounds) }
                (number(report.last_rss, size))
                (number(process.peak_rss, size))
                (number(process.cgroup_limit, size))
                (number(report.growth().map_or(f64::NAN, |slope| slope.per_x), signed_size))
            }
        }
    };
    let words = ["Verdict", "Site", "Process"];
    let numbers = ["Rounds", "Last", "Peak", "Limit", "Growth per round"];
    let caption = "All processes, those that need attention first";
    html! {
        section aria-labelledby="process" {
            h2 id="process" { "Processes" }
            (table("process", caption, &words, &numbers, &rows))
        }
    }
}

fn process(report: &ProcessReport, i: usize, is_open: bool) -> Markup {
    let process = &report.process;
    let mut facts = explain::facts(report);
    facts.splice(0..0, process.role.clone());
    html! {
        article id={ "p" (i) } {
            details open[is_open] {
                summary { h2 { (report.full_name()) " " (verdict_badges(report)) } }
                p.facts { (facts.join(" \u{b7} ")) }
                p.evidence { (explain::evidence(report)) }
                @if let Some(remedy) = explain::remedy(report) {
                    p.remedy { b { "What to do:" } " " (with_code(&remedy)) "." }
                }
                div.charts {
                    @if let Some(chart) = chart::rounds(report) { (chart.figure()) }
                    (chart::stages(report))
                }
                (stages(report, i))
                @if let Some(line) = explanation(&process.allocation_sites, report.finding.verdict) {
                    p.evidence { (line) }
                }
                (sites::section(&process.allocation_sites))
            }
        }
    }
}

fn stages(report: &ProcessReport, i: usize) -> Markup {
    let slope =
        |growth: &Option<Slope>, format: fn(&Slope) -> String| or_dash(growth.as_ref(), format);
    let rows = html! {
        @for stage in &report.stages {
            tr {
                th scope="row" { (short(&stage.stage)) }
                td.n { (stage.rounds) }
                @for bytes in [stage.first, stage.last, stage.peak] { (number(bytes, size)) }
                td.n { (slope(&stage.growth, |s| signed_size(s.per_x))) }
                td.n { (slope(&stage.growth, |s| range(s.low, "to", s.high, Amount::Change))) }
            }
        }
    };
    let growth = format!("Growth per {}", report.finding.unit);
    let numbers = ["Rounds", "First", "Last", "Peak", &growth, "95 % interval"];
    let caption = format!("RSS at each stage of {}", report.full_name());
    let id = format!("p{i}-stages");
    table(&id, &caption, &["Stage"], &numbers, &rows)
}

fn messages(files: &[FileReport]) -> Markup {
    let messages = files.iter().flat_map(|file| file.printed_messages());
    let repeated = message_about_repeated_markers(files);
    let messages: Vec<String> = messages.chain(repeated).collect();
    html! {
        @if !messages.is_empty() {
            section {
                h2 { "Problems while reading" }
                ul { @for message in messages { li { (message) } } }
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

    #[test]
    fn backquoted_text_becomes_code() {
        assert_eq!(with_code("plain").into_string(), "plain");
        assert_eq!(
            with_code("try `a < b`, then `c`").into_string(),
            "try <code>a &lt; b</code>, then <code>c</code>"
        );
    }
}
