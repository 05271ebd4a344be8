//! Charts as SVG: over rounds, over time, within a round, and a sparkline.
//!
//! Written by hand: classes and one style sheet make them readable in light and dark, which no
//! chart crate's SVG is. Names come from files: they pass `svg::escaped` on their way in.

mod frame;

mod rounds;
mod scale;
mod spark;
mod stacked;
mod stages;
mod svg;
mod time;

use std::fmt::Write;

use crate::output::fill;
use crate::report::analyse::ProcessReport;
use frame::{HEADROOM, HEIGHT, WIDTH};
pub use spark::line as spark;
pub use stacked::{stacked, Layer};
pub use svg::escaped;

/// Colours and lines, in light and dark.
pub const STYLE: &str = include_str!("chart.css");

/// The charts of one process. `id` is unique among the processes.
pub fn of_process(report: &ProcessReport, id: &str) -> Vec<String> {
    let charts = [
        rounds::chart(report, &format!("{id}-rounds")),
        time::chart(report, &format!("{id}-time")),
        time::last_round(report, &format!("{id}-last")),
        stages::chart(report, &format!("{id}-stages")),
    ];
    charts.into_iter().flatten().collect()
}

const GAP: f64 = 16.0;
const HEAD: f64 = 78.0;
/// What of a sentence fits into one line.
const LETTERS: usize = 170;

/// One picture of all given processes, a row each.
pub fn picture(reports: &[ProcessReport], more: usize) -> String {
    let width = 2.0 * WIDTH + 3.0 * GAP;
    let tallest = HEIGHT + HEADROOM;
    let row = HEAD + 2.0 * (tallest + GAP) + GAP;
    let height = GAP + row * reports.len() as f64 + if more > 0 { 40.0 } else { 0.0 };
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-labelledby=\"page\" \
         width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
         <title id=\"page\">flarena report: memory of {} processes</title>\n\
         <style>{STYLE}</style>\n<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n",
        reports.len()
    );
    for (i, report) in reports.iter().enumerate() {
        let top = GAP + row * i as f64;
        let (verdict, name) = (report.finding.verdict.name(), escaped(&report.name()));
        let y = top + 20.0;
        let _ = writeln!(
            out,
            "<text class=\"heading\" x=\"{GAP}\" y=\"{y:.0}\">{name}: {verdict}</text>"
        );
        let lines = fill(report.evidence.split(' '), LETTERS);
        for (line, text) in lines.iter().enumerate() {
            let (y, text) = (top + 42.0 + 18.0 * line as f64, escaped(text));
            let _ = writeln!(
                out,
                "<text class=\"evidence\" x=\"{GAP}\" y=\"{y}\">{text}</text>"
            );
        }
        for (place, chart) in of_process(report, &format!("p{i}")).into_iter().enumerate() {
            let x = GAP + (WIDTH + GAP) * (place % 2) as f64;
            let y = top + HEAD + (tallest + GAP) * (place / 2) as f64;
            let _ = writeln!(out, "<g transform=\"translate({x} {y})\">{chart}</g>");
        }
    }
    if more > 0 {
        let (y, text) = (height - 18.0, "more processes: --all draws them");
        let _ = writeln!(
            out,
            "<text class=\"evidence\" x=\"{GAP}\" y=\"{y}\">and {more} {text}</text>"
        );
    }
    out + "</svg>\n"
}
