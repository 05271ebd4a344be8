//! Draws charts as SVG: all processes over time, one process over its rounds and at its stages, a sparkline, and
//! allocation sites over the rounds.
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
mod together;

use crate::report::analyse::ProcessReport;
use frame::{HEIGHT, WIDTH};
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
        stages::chart(report, &format!("{id}-stages")),
    ];
    charts.into_iter().flatten().collect()
}

const GAP: f64 = 16.0;

/// A chart of lines as a file of its own.
pub fn lines_picture(title: &str, all: &[Line]) -> String {
    let height = HEIGHT + lines::headroom(all) + 2.0 * GAP;
    let width = WIDTH + 2.0 * GAP;
    let chart = lines("lines", title, all);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-labelledby=\"page\" \
         width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
         <title id=\"page\">{}</title>\n<style>{STYLE}</style>\n\
         <rect class=\"page\" width=\"100%\" height=\"100%\"/>\n\
         <g transform=\"translate({GAP} {GAP})\">{chart}</g>\n</svg>\n",
        escaped(title)
    )
}
