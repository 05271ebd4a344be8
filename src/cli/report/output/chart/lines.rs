//! Several lines over the same time: the memory of the variants of `flarena compare`.

use super::frame::{thinned, Frame, LEGEND_ROW};
use super::scale::time_ticks;
use super::svg::polyline;
use crate::report::units::{size, MB};

const MAX_POINTS: usize = 600;
/// The style sheet has this many colours.
const COLOURS: usize = 7;
/// More names need a second row of the legend.
const NAMES_PER_ROW: usize = 4;

/// Seconds and bytes.
pub struct Line<'a> {
    pub name: &'a str,
    pub points: Vec<(f64, f64)>,
}

/// The chart of all lines. `id` must be unique on the page.
pub fn lines(id: &str, title: &str, lines: &[Line]) -> String {
    let points = || lines.iter().flat_map(|line| &line.points);
    let end = points().map(|point| point.0).fold(0.0, f64::max);
    let highest = points().map(|point| point.1).fold(MB, f64::max);
    let mut frame = Frame::new((0.0, end), (0.0, highest), f64::NAN, headroom(lines));
    frame.axes(&time_ticks(end, 8.0), "time");
    for (i, line) in lines.iter().enumerate() {
        let class = format!("line line-{}", i % COLOURS);
        let points = thinned(&line.points, MAX_POINTS);
        let places: Vec<_> = points.iter().map(|(x, y)| frame.place(*x, *y)).collect();
        frame.svg.path(&class, &polyline(places));
        frame.legend(&class, line.name);
    }
    frame.title(title, "PSS of all processes");
    let peak = |line: &Line| {
        let peak = line.points.iter().map(|point| point.1).fold(0.0, f64::max);
        format!("{}: peak {}", line.name, size(peak))
    };
    let peaks: Vec<String> = lines.iter().map(peak).collect();
    frame.finish(id, title, &peaks.join(", "))
}

/// The space above the data for a second row of the legend.
pub fn headroom(lines: &[Line]) -> f64 {
    if lines.len() > NAMES_PER_ROW {
        LEGEND_ROW
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_drawn_with_its_name() {
        let line = |name| Line {
            name,
            points: vec![(0.0, 5.0 * MB), (1.0, 9.0 * MB)],
        };
        let picture = lines("id", "a <title>", &[line("one"), line("two")]);
        assert_eq!(picture.matches("class=\"line line-").count(), 4);
        assert!(picture.contains(">one<") && picture.contains("two: peak 9.00 MB"));
        assert!(picture.contains("a &lt;title&gt;") && picture.ends_with("</svg>\n"));
    }
}
