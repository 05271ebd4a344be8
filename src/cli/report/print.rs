//! The report on a terminal.

use super::analysis::{tally, ProcessReport};
use super::evidence::watched;
use super::limits::Limits;
use super::sites;
use super::stats::Slope;
use super::units::{change, printable, size};
use crate::output::{align_right, render, table};

pub fn report(reports: &[ProcessReport], limits: &Limits) -> String {
    let shown = limits.rows(reports.len());
    let mut text = String::new();
    if reports.len() > 1 {
        text += &overview(&reports[..shown]);
        if shown < reports.len() {
            let more = reports.len() - shown;
            text += &format!("... and {more} more: --all\n");
        }
        text += &summary(reports);
    }
    let details = limits.details(reports.len());
    for report in reports.iter().take(details) {
        text += "\n";
        text += &process(report);
    }
    if details < reports.len() {
        let more = reports.len() - details;
        text += &format!("\nThe stages of {more} more: --all, --html or --json\n");
    }
    text
}

/// `3 flat, 1 live growth`
pub fn summary(reports: &[ProcessReport]) -> String {
    let counts: Vec<String> = tally(reports)
        .iter()
        .map(|(verdict, n)| format!("{n} {}", verdict.name()))
        .collect();
    format!("\n{} processes: {}\n", reports.len(), counts.join(", "))
}

fn overview(reports: &[ProcessReport]) -> String {
    let mut table = table([
        "VERDICT",
        "SITE",
        "PROC",
        "PID",
        "ROUNDS",
        "LAST",
        "PEAK",
        "GROWTH/ROUND",
    ]);
    for report in reports {
        table.add_row([
            report.finding.verdict.name().to_owned(),
            printable(&report.process.site()),
            printable(&report.process.proc),
            report.pid(),
            report.finding.rounds.to_string(),
            size(report.last_rss),
            size(report.peak),
            report
                .growth()
                .map_or("-".to_owned(), |slope| change(slope.per_x)),
        ]);
    }
    align_right(&mut table, 3..8);
    render(&table)
}

fn process(report: &ProcessReport) -> String {
    let process = &report.process;
    let mut facts = vec![printable(&report.name())];
    facts.extend(process.alloc.as_deref().map(printable));
    facts.extend(process.log.as_deref().map(printable));
    facts.extend(watched(process));
    let limit = match process.limit {
        limit if limit.is_nan() => String::new(),
        limit => format!(" of {}", size(limit)),
    };
    facts.push(format!("peak {}{limit}", size(report.peak)));
    let mut text = format!("{}\n", facts.join(", "));
    text += &format!("  {}: {}\n", report.finding.verdict.name(), report.evidence);
    if let Some(remedy) = &report.remedy {
        text += &format!("  {remedy}\n");
    }
    if let Some(line) = sites::sentence(&process.held) {
        text += &format!("  {line}\n");
    }
    text + &stages(report) + &sites::table(&process.held)
}

fn stages(report: &ProcessReport) -> String {
    let heading = format!("GROWTH/{}", report.finding.unit.to_uppercase());
    let mut table = table([
        "STAGE",
        "ROUNDS",
        "FIRST",
        "LAST",
        "PEAK",
        &heading,
        "95 % INTERVAL",
        "SURE",
    ]);
    for stage in &report.stages {
        let slope = |of: fn(&Slope) -> String| stage.growth.as_ref().map_or("-".to_owned(), of);
        table.add_row([
            printable(&stage.stage),
            stage.rounds.to_string(),
            size(stage.first),
            size(stage.last),
            size(stage.peak),
            slope(|s| change(s.per_x)),
            slope(|s| format!("{} .. {}", change(s.low), change(s.high))),
            slope(confidence),
        ]);
    }
    align_right(&mut table, 1..8);
    render(&table)
}

/// How sure it is that the direction of the slope is no accident.
fn confidence(slope: &Slope) -> String {
    match 100.0 * slope.confidence() {
        percent if percent > 99.9 => ">99.9 %".to_owned(),
        percent => format!("{percent:.1} %"),
    }
}
