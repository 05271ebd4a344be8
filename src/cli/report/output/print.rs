//! The report on a terminal.

use std::ops::Range;

use crate::output::{align_right, fill, render, table, terminal_width};
use crate::report::analyse::finding::Verdict;
use crate::report::analyse::stats::Slope;
use crate::report::analyse::{tally, ProcessReport};
use crate::report::explain::watched;
use crate::report::output::{Limits, DETAILS, ROWS};
use crate::report::sites;
use crate::report::units::{change, known, printable, size};
use comfy_table::Table;

pub fn report(reports: &[ProcessReport], limits: &Limits) -> String {
    let mut text = String::new();
    if reports.len() > 1 {
        let (shown, more) = limits.shown(reports, ROWS);
        text += &overview(shown);
        if more > 0 {
            text += &format!("... and {more} more: --all\n");
        }
        text += &summary(reports);
    }
    let (detailed, more) = limits.shown(reports, DETAILS);
    for report in detailed {
        text += "\n";
        text += &process(report);
    }
    if more > 0 {
        text += &format!("\nThe stages of {more} more: --all, --html or --json\n");
    }
    text
}

/// `3 flat, 1 live growth`
fn summary(reports: &[ProcessReport]) -> String {
    let count = |(verdict, n): (Verdict, usize)| format!("{n} {}", verdict.name());
    let counts: Vec<String> = tally(reports).into_iter().map(count).collect();
    format!("\n{} processes: {}\n", reports.len(), counts.join(", "))
}

fn overview(reports: &[ProcessReport]) -> String {
    let growth = "GROWTH/ROUND";
    let mut table = table(["VERDICT", "SITE", "PROCESS", "PID", "LAST", "PEAK", growth]);
    for report in reports {
        table.add_row([
            report.finding.verdict.name().to_owned(),
            printable(&report.process.site()),
            printable(&report.proc()),
            report.pid(),
            size(report.last_rss),
            size(report.process.hwm),
            known(report.growth(), |slope| change(slope.per_x)),
        ]);
    }
    tight(table, 3..7)
}

/// One space between columns: 80 of them must do. Numbers stand on the right.
fn tight(mut table: Table, numbers: Range<usize>) -> String {
    align_right(&mut table, numbers);
    table.column_iter_mut().for_each(|column| {
        column.set_padding((0, 1));
    });
    render(&table)
}

fn process(report: &ProcessReport) -> String {
    let process = &report.process;
    let mut facts = vec![printable(&report.name())];
    facts.extend(process.alloc.as_deref().map(printable));
    facts.extend(process.log.as_deref().map(printable));
    facts.extend(watched(process));
    let mut peak = format!("peak {}", size(process.hwm));
    if !process.limit.is_nan() {
        peak += &format!(" of {}", size(process.limit));
    }
    facts.push(peak);
    let verdict = format!("{}: {}", report.finding.verdict.name(), report.evidence);
    let mut text = lines(&facts.join(", "), "", "  ");
    text += &lines(&verdict, "  ", "  ");
    if let Some(remedy) = &report.remedy {
        text += &lines(remedy, "  -> ", "     ");
    }
    if let Some(line) = sites::guilty(&process.held, report.finding.verdict) {
        text += &format!("  {line}\n");
    }
    text + &stages(report) + &sites::table(&process.held)
}

/// Broken where the terminal ends; in a pipe one line, which tools search.
fn lines(text: &str, first: &str, later: &str) -> String {
    let width = terminal_width().map_or(usize::MAX, usize::from);
    let room = width.saturating_sub(later.len().max(first.len())).max(20);
    let joint = format!("\n{later}");
    format!("{first}{}\n", fill(text.split(' '), room).join(&joint))
}

fn stages(report: &ProcessReport) -> String {
    let heading = format!("GROWTH/{} (95 %)", report.finding.unit.to_uppercase());
    let mut table = table(["STAGE", "ROUNDS", "FIRST", "LAST", "PEAK", &heading]);
    for stage in &report.stages {
        table.add_row([
            printable(&stage.stage),
            stage.rounds.to_string(),
            size(stage.first),
            size(stage.last),
            size(stage.peak),
            known(stage.growth.as_ref(), with_bounds),
        ]);
    }
    tight(table, 1..6)
}

/// `+10.0 (+9.10 .. +10.4) MB`
fn with_bounds(slope: &Slope) -> String {
    let all = [slope.per_x, slope.low, slope.high].map(change);
    let parts = all
        .each_ref()
        .map(|text| text.split_once(' ').unwrap_or((text, "")));
    let [(middle, unit), (low, of_low), (high, of_high)] = parts;
    if of_low == unit && of_high == unit {
        return format!("{middle} ({low} .. {high}) {unit}");
    }
    let [middle, low, high] = all;
    format!("{middle} ({low} .. {high})")
}
