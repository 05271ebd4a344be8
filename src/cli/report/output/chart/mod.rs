//! Draws charts as SVG: over rounds, over time, within a round, a sparkline, and stacked layers.
//!
//! The SVG is written by hand. Its colours are in one style sheet, which adapts to light and dark
//! mode; the crates for charts write fixed colours. All text from files is escaped by `svg::escaped`.

mod frame;
mod layers;
mod lines;
mod rounds;
mod scale;
mod stacked;
mod stages;
mod svg;
mod time;
mod together;

use std::fmt::Write;

use crate::output::fill;
use crate::report::analyse::ProcessReport;
use crate::report::explain;
use frame::{HEADROOM, HEIGHT, WIDTH};
pub use layers::colours;
pub use lines::{lines, Line};
pub use rounds::sparkline;
pub use stacked::{stacked, Layer};
pub use svg::escaped;
pub use together::chart as together;

/// Colours and lines, in light and dark.
pub const STYLE: &str = include_str!("chart.css");

/// The charts of one process. `id` must be unique among the processes.
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
const TEXT_HEIGHT: f64 = 78.0;
/// Letters that fit into one line.
const LETTERS: usize = 170;

/// One picture with a row for each process. `omitted` is the number of the others.
pub fn picture(reports: &[ProcessReport], omitted: usize) -> String {
    let width = 2.0 * WIDTH + 3.0 * GAP;
    let tallest = HEIGHT + HEADROOM;
    let row = TEXT_HEIGHT + 2.0 * (tallest + GAP) + GAP;
    let height = GAP + row * reports.len() as f64 + if omitted > 0 { 40.0 } else { 0.0 };
    let title = format!("flarena report: memory of {} processes", reports.len());
    let mut out = picture_start(&title, (width, height));
    for (i, report) in reports.iter().enumerate() {
        let top = GAP + row * i as f64;
        let (verdict, name) = (report.verdict_name(), escaped(&report.full_name()));
        let y = top + 20.0;
        let _ = writeln!(
            out,
            "<text class=\"heading\" x=\"{GAP}\" y=\"{y:.0}\">{name}: {verdict}</text>"
        );
        let evidence = explain::evidence(report);
        let lines = fill(evidence.split(' '), LETTERS);
        for (line, text) in lines.iter().enumerate() {
            let (y, text) = (top + 42.0 + 18.0 * line as f64, escaped(text));
            let _ = writeln!(
                out,
                "<text class=\"evidence\" x=\"{GAP}\" y=\"{y}\">{text}</text>"
            );
        }
        for (place, chart) in of_process(report, &format!("p{i}")).into_iter().enumerate() {
            let x = GAP + (WIDTH + GAP) * (place % 2) as f64;
            let y = top + TEXT_HEIGHT + (tallest + GAP) * (place / 2) as f64;
            let _ = writeln!(out, "<g transform=\"translate({x} {y})\">{chart}</g>");
        }
    }
    if omitted > 0 {
        let y = height - 18.0;
        let _ = writeln!(
            out,
            "<text class=\"evidence\" x=\"{GAP}\" y=\"{y}\">and {omitted} more processes: use --all</text>"
        );
    }
    out + "</svg>\n"
}

/// A chart of lines as a file of its own.
pub fn lines_picture(title: &str, all: &[Line]) -> String {
    let height = HEIGHT + lines::headroom(all) + 2.0 * GAP;
    let start = picture_start(title, (WIDTH + 2.0 * GAP, height));
    let chart = lines("lines", title, all);
    format!("{start}<g transform=\"translate({GAP} {GAP})\">{chart}</g>\n</svg>\n")
}

/// The beginning of a picture in a file of its own.
fn picture_start(title: &str, (width, height): (f64, f64)) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-labelledby=\"page\" \
         width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
         <title id=\"page\">{}</title>\n<style>{STYLE}</style>\n\
         <rect class=\"page\" width=\"100%\" height=\"100%\"/>\n",
        escaped(title)
    )
}
