//! The report on a terminal.

use super::analysis::{tally, ProcessReport};
use super::evidence::watched;
use super::limits::Limits;
use super::sites;
use super::stats::Slope;
use super::units::{change, printable, size, wrapped};
use crate::output::{align_right, render, table, terminal_width};
use comfy_table::Table;

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
        "PROCESS",
        "PID",
        "LAST",
        "PEAK",
        "GROWTH/ROUND",
    ]);
    for report in reports {
        table.add_row([
            report.finding.verdict.name().to_owned(),
            printable(&report.process.site()),
            printable(&report.proc()),
            report.pid(),
            size(report.last_rss),
            size(report.peak),
            report
                .growth()
                .map_or("-".to_owned(), |slope| change(slope.per_x)),
        ]);
    }
    align_right(&mut table, 3..7);
    tight(&mut table);
    render(&table)
}

/// One space between columns: 80 of them must do.
fn tight(table: &mut Table) {
    table.column_iter_mut().for_each(|column| {
        column.set_padding((0, 1));
    });
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
    let verdict = format!("{}: {}", report.finding.verdict.name(), report.evidence);
    let mut text = lines(&facts.join(", "), "", "  ");
    text += &lines(&verdict, "  ", "  ");
    if let Some(remedy) = &report.remedy {
        text += &lines(remedy, "  -> ", "     ");
    }
    if let Some(line) = sites::guilty(&report.process.held, report.finding.verdict) {
        text += &format!("  {line}\n");
    }
    text + &stages(report) + &sites::table(&process.held)
}

/// Broken where the terminal ends; in a pipe one line, which tools search.
fn lines(text: &str, first: &str, later: &str) -> String {
    let width = terminal_width().map_or(usize::MAX, usize::from);
    let room = width.saturating_sub(later.len().max(first.len())).max(20);
    let lines = wrapped(text, room);
    let indented = lines.iter().enumerate().map(|(i, line)| {
        let indent = if i == 0 { first } else { later };
        format!("{indent}{line}\n")
    });
    indented.collect()
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
            stage.growth.as_ref().map_or("-".to_owned(), with_bounds),
        ]);
    }
    align_right(&mut table, 1..6);
    tight(&mut table);
    render(&table)
}

/// `+10.0 (+9.10 .. +10.4) MB`
fn with_bounds(slope: &Slope) -> String {
    let number = |bytes: f64| {
        let text = change(bytes);
        text.split(' ').next().unwrap_or_default().to_owned()
    };
    let unit = |bytes: f64| size(bytes).split(' ').nth(1).unwrap_or_default().to_owned();
    let all = [slope.per_x, slope.low, slope.high];
    if all.iter().any(|bytes| unit(*bytes) != unit(slope.per_x)) {
        let [middle, low, high] = all.map(change);
        return format!("{middle} ({low} .. {high})");
    }
    let [middle, low, high] = all.map(number);
    format!("{middle} ({low} .. {high}) {}", unit(slope.per_x))
}
