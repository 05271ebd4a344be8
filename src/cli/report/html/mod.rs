//! The report as one page: no script, no font, no picture from elsewhere; what a chart shows stands
//! in a table beside it. One small script of its own sorts the table; the page is whole without it.

use std::fmt::Write;
use std::io;
use std::path::Path;

use super::analysis::{tally, ProcessReport};
use super::chart::{self, escaped};
use super::evidence::watched;
use super::finding::Verdict;
use super::limits::Limits;
use super::read::FileReport;
use super::sites;
use super::stats::Slope;
use super::units::{change, size};
use super::write::replace;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const TERMS: &str = include_str!("terms.html");

pub fn save(
    path: &Path,
    reports: &[ProcessReport],
    files: &[FileReport],
    limits: &Limits,
) -> io::Result<()> {
    replace(path, page(reports, files, limits).as_bytes())
}

pub fn page(reports: &[ProcessReport], files: &[FileReport], limits: &Limits) -> String {
    let (listed, drawn) = (limits.listed(reports.len()), limits.drawn(reports.len()));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"flarena {}\">\n<title>flarena report</title>\n\
         <style>\n{}{STYLE}</style>\n</head>\n<body>\n",
        flarena_shared::VERSION,
        chart::STYLE,
    );
    header(&mut out, reports, files);
    out += "<main>\n";
    overview(&mut out, &reports[..listed], drawn);
    for (i, report) in reports.iter().take(drawn).enumerate() {
        process(&mut out, report, i);
    }
    if drawn < reports.len() {
        let (undrawn, unlisted) = (reports.len() - drawn, reports.len() - listed);
        let _ = writeln!(
            out,
            "<p>{undrawn} more processes are not drawn, {unlisted} of them not listed either; \
             --all shows them.</p>"
        );
    }
    unread(&mut out, files);
    out += "</main>\n";
    out += TERMS;
    let _ = write!(out, "<script>\n{SCRIPT}</script>\n");
    out + "</body>\n</html>\n"
}

fn header(out: &mut String, reports: &[ProcessReport], files: &[FileReport]) {
    let markers: u64 = files.iter().map(|file| file.markers).sum();
    let _ = writeln!(
        out,
        "<header>\n<h1>Memory report</h1>\n<p>{}, {markers} markers, {}</p>\n<ul class=\"tally\">",
        counted(reports.len(), "process", "processes"),
        counted(files.len(), "file", "files"),
    );
    for (verdict, count) in tally(reports) {
        let _ = writeln!(out, "<li>{} <b>{count}</b></li>", badge(verdict));
    }
    *out += "</ul>\n</header>\n";
}

fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// A sign and a colour beside the word: neither has to be seen to read it.
fn badge(verdict: Verdict) -> String {
    let (class, sign) = match verdict {
        Verdict::Flat => ("good", "\u{25cf}"),
        Verdict::NotEnoughRounds => ("open", "\u{25cb}"),
        Verdict::CyclicGarbage => ("bad", "\u{21bb}"),
        Verdict::Unclear => ("open", "?"),
        Verdict::WarmingUp => ("open", "\u{25d4}"),
        Verdict::Swap => ("bad", "\u{21c4}"),
        _ => ("bad", "\u{25b2}"),
    };
    let name = verdict.name();
    format!("<span class=\"badge {class}\"><span aria-hidden=\"true\">{sign}</span> {name}</span>")
}

fn overview(out: &mut String, reports: &[ProcessReport], drawn: usize) {
    *out += "<section aria-labelledby=\"overview\">\n<h2 id=\"overview\">Processes</h2>\n\
             <div class=\"wide\" role=\"region\" aria-labelledby=\"overview\" tabindex=\"0\">\n\
             <table class=\"sortable\">\n<caption>All processes, those that need attention first</caption>\n<thead><tr>\
             <th scope=\"col\">Verdict</th><th scope=\"col\">Site</th><th scope=\"col\">Process</th>\
             <th scope=\"col\">RSS over the rounds</th><th scope=\"col\" class=\"n\">Rounds</th>\
             <th scope=\"col\" class=\"n\">Last</th><th scope=\"col\" class=\"n\">Peak</th>\
             <th scope=\"col\" class=\"n\">Limit</th><th scope=\"col\" class=\"n\">Growth per round</th>\
             </tr></thead>\n<tbody>\n";
    for (i, report) in reports.iter().enumerate() {
        let process = &report.process;
        let pid = process.pid.map(|pid| format!(" {pid}")).unwrap_or_default();
        let name = escaped(&format!("{}{pid}", report.proc()));
        let name = if i < drawn {
            format!("<a href=\"#p{i}\">{name}</a>")
        } else {
            name
        };
        let per_round = report.growth().map_or(f64::NAN, |slope| slope.per_x);
        let growth = report
            .growth()
            .map_or("-".to_owned(), |slope| change(slope.per_x));
        let _ = writeln!(
            out,
            "<tr><td>{}</td><th scope=\"row\">{}</th><td>{name}</td><td data-v=\"{}\">{}</td>\
             <td class=\"n\">{}</td>{}{}{}{}</tr>",
            badge(report.finding.verdict),
            escaped(&process.site()),
            sort_key(per_round),
            chart::spark(report, &format!("s{i}")),
            report.finding.rounds,
            number(report.last_rss, &size(report.last_rss)),
            number(report.peak, &size(report.peak)),
            number(process.limit, &size(process.limit)),
            number(per_round, &growth),
        );
    }
    *out += "</tbody>\n</table>\n</div>\n</section>\n";
}

/// A cell that is sorted by its value and not by its text.
fn number(value: f64, text: &str) -> String {
    let key = sort_key(value);
    format!("<td class=\"n\" data-v=\"{key}\">{text}</td>")
}

fn sort_key(value: f64) -> String {
    if value.is_finite() {
        format!("{value:.0}")
    } else {
        String::new()
    }
}

fn process(out: &mut String, report: &ProcessReport, i: usize) {
    let process = &report.process;
    let facts = [
        process.alloc.clone(),
        process.role.clone(),
        process.log.clone(),
        watched(process),
    ];
    let facts: Vec<String> = facts
        .into_iter()
        .flatten()
        .map(|fact| escaped(&fact))
        .collect();
    let _ = writeln!(
        out,
        "<article id=\"p{i}\" aria-labelledby=\"p{i}-name\">\n<h2 id=\"p{i}-name\">{} {}</h2>\n\
         <p class=\"facts\">{}</p>\n<p class=\"evidence\">{}</p>",
        escaped(&report.name()),
        badge(report.finding.verdict),
        facts.join(" \u{b7} "),
        escaped(&report.evidence),
    );
    if let Some(remedy) = &report.remedy {
        let _ = writeln!(
            out,
            "<p class=\"remedy\"><b>What to do:</b> {}.</p>",
            with_code(&escaped(remedy))
        );
    }
    *out += "<div class=\"charts\">\n";
    for chart in chart::of_process(report, &format!("p{i}")) {
        let _ = write!(out, "<figure>\n{chart}</figure>\n");
    }
    *out += "</div>\n";
    stages(out, report, i);
    if let Some(line) = sites::guilty(&report.process.held, report.finding.verdict) {
        let _ = writeln!(out, "<p class=\"evidence\">{}</p>", escaped(&line));
    }
    *out += &sites::section(&report.process.held, &report.name(), &format!("p{i}-sites"));
    *out += "</article>\n";
}

fn stages(out: &mut String, report: &ProcessReport, i: usize) {
    let unit = report.finding.unit;
    let _ = writeln!(
        out,
        "<div class=\"wide\" role=\"region\" aria-labelledby=\"p{i}-stages\" tabindex=\"0\">\n<table>\n\
         <caption id=\"p{i}-stages\">RSS at each stage of {}</caption>\n<thead><tr>\
         <th scope=\"col\">Stage</th><th scope=\"col\" class=\"n\">Rounds</th>\
         <th scope=\"col\" class=\"n\">First</th><th scope=\"col\" class=\"n\">Last</th>\
         <th scope=\"col\" class=\"n\">Peak</th><th scope=\"col\" class=\"n\">Growth per {unit}</th>\
         <th scope=\"col\" class=\"n\">95 % interval</th></tr></thead>\n<tbody>",
        escaped(&report.name()),
    );
    for stage in &report.stages {
        let slope = |of: fn(&Slope) -> String| stage.growth.as_ref().map_or("-".to_owned(), of);
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
            slope(|s| change(s.per_x)),
            slope(|s| format!("{} to {}", change(s.low), change(s.high))),
        );
    }
    *out += "</tbody>\n</table>\n</div>\n";
}

fn unread(out: &mut String, files: &[FileReport]) {
    let messages: Vec<String> = files.iter().flat_map(|file| file.printed()).collect();
    if messages.is_empty() {
        return;
    }
    *out += "<section aria-labelledby=\"unread\">\n<h2 id=\"unread\">While reading</h2>\n<ul>\n";
    for message in messages {
        let _ = writeln!(out, "<li>{}</li>", escaped(&message));
    }
    *out += "</ul>\n</section>\n";
}

/// Commands between backquotes as a page shows them; the text is escaped already.
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
    fn a_command_in_a_remedy_is_code() {
        assert_eq!(with_code("plain"), "plain");
        assert_eq!(
            with_code("try `a &lt; b`, then `c`"),
            "try <code>a &lt; b</code>, then <code>c</code>"
        );
    }
}
