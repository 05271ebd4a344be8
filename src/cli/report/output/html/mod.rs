//! Writes the report as one self-contained page, without anything loaded from elsewhere.
//!
//! Every chart has its numbers in a table beside it. A small script sorts and filters; without it the
//! page is complete.

mod parts;
mod sites;
mod together;

use std::fmt::Write;

use super::chart::{self, escaped};
use super::{ListLength, CHARTED_PROCESSES, PAGE_ROWS};
use crate::report::analyse::stats::Slope;
use crate::report::analyse::{count_verdicts, ProcessReport, Together, Verdict};
use crate::report::explain::{self, observed_time};
use crate::report::read::{message_about_repeated_markers, FileReport};
use crate::report::sites::explanation;
use crate::report::units::{or_dash, plural, range, signed_size, size, Amount};
use parts::{badge, heads, kill_mark, number, sort_key, table_start};

/// Processes whose charts are unfolded: the first ones that are not flat.
const OPEN_PROCESSES: usize = 3;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const TERMS: &str = include_str!("terms.html");

pub fn page(reports: &[ProcessReport], files: &[FileReport], length: ListLength) -> String {
    let (listed, unlisted) = length.split(reports, PAGE_ROWS);
    let (drawn, undrawn) = length.split(reports, CHARTED_PROCESSES);
    let mut out = start("flarena report");
    let all = Together::of(reports);
    header(&mut out, all.as_ref(), reports, files);
    out += "<main>\n";
    if let Some(all) = &all {
        together::section(&mut out, all, reports);
    }
    overview(&mut out, listed, drawn.len());
    let mut opened = 0;
    for (i, report) in drawn.iter().enumerate() {
        let is_quiet = report.finding.verdict == Verdict::Flat && !report.is_killed();
        let is_open = drawn.len() == 1 || !is_quiet && opened < OPEN_PROCESSES;
        opened += usize::from(is_open);
        process(&mut out, report, i, is_open);
    }
    if undrawn > 0 {
        let _ = writeln!(
            out,
            "<p>{undrawn} more processes have no charts, and {unlisted} of them are not in the \
             table; --all shows them.</p>"
        );
    }
    messages(&mut out, files);
    out += "</main>\n";
    out += TERMS;
    let _ = write!(out, "<script>\n{SCRIPT}</script>\n");
    out + "</body>\n</html>\n"
}

/// The beginning of a page, up to its body.
pub fn start(title: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"flarena {}\">\n<title>{title}</title>\n\
         <style>\n{}{STYLE}</style>\n</head>\n<body>\n",
        flarena_shared::VERSION,
        chart::STYLE,
    )
}

fn header(
    out: &mut String,
    all: Option<&Together>,
    reports: &[ProcessReport],
    files: &[FileReport],
) {
    let markers: u64 = files.iter().map(|file| file.markers).sum();
    let _ = writeln!(
        out,
        "<header>\n<h1>Memory report</h1>\n<p>{}, {markers} markers, {}</p>\n<ul class=\"tally\">",
        plural(reports.len() as u64, "process"),
        plural(files.len() as u64, "file"),
    );
    let killed = reports.iter().filter(|report| report.is_killed()).count();
    if killed > 0 {
        let _ = writeln!(out, "<li>{} <b>{killed}</b></li>", kill_mark());
    }
    for (verdict, count) in count_verdicts(reports) {
        let _ = writeln!(out, "<li>{} <b>{count}</b></li>", badge(verdict));
    }
    *out += "</ul>\n";
    together::facts(out, all, reports);
    *out += "</header>\n";
}

/// The verdict, after a sign for a process that the kernel most likely killed.
fn verdict_badges(report: &ProcessReport) -> String {
    let verdict = badge(report.finding.verdict);
    match report.is_killed() {
        true => kill_mark() + " " + &verdict,
        false => verdict,
    }
}

fn overview(out: &mut String, reports: &[ProcessReport], drawn: usize) {
    *out += "<section aria-labelledby=\"overview\">\n<h2 id=\"overview\">Processes</h2>\n";
    let caption = "All processes, those that need attention first";
    *out += &table_start("overview", "process-table", caption);
    *out += &heads(
        &["Verdict", "Site", "Process", "RSS over the rounds"],
        &["Rounds", "Last", "Peak", "Limit", "Growth per round"],
    );
    for (i, report) in reports.iter().enumerate() {
        let process = &report.process;
        let pid = process.pid.map(|pid| format!(" {pid}")).unwrap_or_default();
        let name = escaped(&format!("{}{pid}", report.process_name()));
        let name = match i < drawn {
            true => format!("<a href=\"#p{i}\">{name}</a>"),
            false => name,
        };
        let per_round = report.growth().map_or(f64::NAN, |slope| slope.per_x);
        let _ = writeln!(
            out,
            "<tr data-site=\"{}\"><td>{}</td><th scope=\"row\">{}</th><td>{name}</td><td data-v=\"{}\">{}</td>\
             <td class=\"n\">{}</td>{}{}{}{}</tr>",
            escaped(&report.site_or_name()),
            verdict_badges(report),
            escaped(&process.site_names()),
            sort_key(per_round),
            chart::sparkline(report, &format!("s{i}")),
            report.finding.rounds,
            number(report.last_rss, size),
            number(process.peak_rss, size),
            number(process.cgroup_limit, size),
            number(per_round, signed_size),
        );
    }
    *out += "</tbody>\n</table>\n</div>\n</section>\n";
}

fn process(out: &mut String, report: &ProcessReport, i: usize, is_open: bool) {
    let process = &report.process;
    let job = process.job.as_ref().map(|job| format!("job {job}"));
    let facts = [
        &explain::unfinished(process),
        &job,
        &process.alloc,
        &process.role,
        &process.log,
        &explain::programs(process),
        &observed_time(process),
        &explain::shared_memory(report),
        &explain::last_marker(process),
    ];
    let known = facts.into_iter().flatten();
    let facts: Vec<String> = known.map(|fact| escaped(fact)).collect();
    let open = if is_open { " open" } else { "" };
    let _ = writeln!(
        out,
        "<article id=\"p{i}\" aria-labelledby=\"p{i}-name\">\n<details{open}>\n\
         <summary><h2 id=\"p{i}-name\">{} {}</h2></summary>\n<p class=\"facts\">{}</p>\n<p class=\"evidence\">{}</p>",
        escaped(&report.full_name()),
        verdict_badges(report),
        facts.join(" \u{b7} "),
        escaped(&explain::evidence(report)),
    );
    if let Some(remedy) = explain::remedy(report) {
        let _ = writeln!(
            out,
            "<p class=\"remedy\"><b>What to do:</b> {}.</p>",
            with_code(&escaped(&remedy))
        );
    }
    *out += "<div class=\"charts\">\n";
    for chart in chart::of_process(report, &format!("p{i}")) {
        let _ = write!(out, "<figure>\n{chart}</figure>\n");
    }
    *out += "</div>\n";
    stages(out, report, i);
    if let Some(line) = explanation(&process.allocation_sites, report.finding.verdict) {
        let _ = writeln!(out, "<p class=\"evidence\">{}</p>", escaped(&line));
    }
    let id = format!("p{i}-sites");
    *out += &sites::section(&process.allocation_sites, &report.full_name(), &id);
    *out += "</details>\n</article>\n";
}

fn stages(out: &mut String, report: &ProcessReport, i: usize) {
    let _ = writeln!(
        out,
        "<div class=\"wide\" role=\"region\" aria-labelledby=\"p{i}-stages\" tabindex=\"0\">\n<table>\n\
         <caption id=\"p{i}-stages\">RSS at each stage of {}</caption>",
        escaped(&report.full_name()),
    );
    let growth = format!("Growth per {}", report.finding.unit);
    let numbers = ["Rounds", "First", "Last", "Peak", &growth, "95 % interval"];
    *out += &heads(&["Stage"], &numbers);
    for stage in &report.stages {
        let slope = |format: fn(&Slope) -> String| or_dash(stage.growth.as_ref(), format);
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td></tr>",
            escaped(&stage.stage),
            stage.rounds,
            size(stage.first),
            size(stage.last),
            size(stage.peak),
            slope(|s| signed_size(s.per_x)),
            slope(|s| range(s.low, "to", s.high, Amount::Change)),
        );
    }
    *out += "</tbody>\n</table>\n</div>\n";
}

fn messages(out: &mut String, files: &[FileReport]) {
    let messages = files.iter().flat_map(|file| file.printed_messages());
    let messages: Vec<String> = messages
        .chain(message_about_repeated_markers(files))
        .collect();
    if messages.is_empty() {
        return;
    }
    *out += "<section aria-labelledby=\"unread\">\n<h2 id=\"unread\">Problems while reading</h2>\n<ul>\n";
    for message in messages {
        let _ = writeln!(out, "<li>{}</li>", escaped(&message));
    }
    *out += "</ul>\n</section>\n";
}

/// Turns backquoted text into `<code>`. The text is escaped already.
fn with_code(text: &str) -> String {
    let tags = ["<code>", "</code>"].into_iter().cycle();
    let mut parts = text.split('`');
    let first = parts.next().unwrap_or_default().to_owned();
    parts
        .zip(tags)
        .fold(first, |text, (part, tag)| text + tag + part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backquoted_text_becomes_code() {
        assert_eq!(with_code("plain"), "plain");
        assert_eq!(
            with_code("try `a &lt; b`, then `c`"),
            "try <code>a &lt; b</code>, then <code>c</code>"
        );
    }
}
