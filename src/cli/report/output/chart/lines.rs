//! Several lines over the same time: the memory of runs beside each other.

use super::scale::Axis;
use super::{thinned, Chart, Curve, Points};
use crate::report::units::{size, MB};

const MAX_POINTS: usize = 600;
const SIZE: (f64, f64) = (620.0, 270.0);
const COLOURS: [&str; 7] = [
    "line-0", "line-1", "line-2", "line-3", "line-4", "line-5", "line-6",
];

/// Seconds and bytes.
pub struct Line {
    pub name: String,
    pub points: Points,
}

/// The chart of all lines.
pub fn lines(title: &str, note: &str, lines: Vec<Line>) -> Chart {
    let points = || lines.iter().flat_map(|line| &line.points);
    let end = points().map(|point| point.0).fold(0.0, f64::max);
    let highest = points().map(|point| point.1).fold(MB, f64::max);
    let peak = |line: &Line| {
        let peak = line.points.iter().map(|point| point.1).fold(0.0, f64::max);
        format!("{}: peak {}", line.name, size(peak))
    };
    let peaks: Vec<String> = lines.iter().map(peak).collect();
    let curve = |(line, class): (Line, &'static str)| Curve {
        class,
        name: line.name,
        points: thinned(&line.points, MAX_POINTS, |point| point.1),
    };
    Chart {
        title: title.to_owned(),
        note: note.to_owned(),
        label: format!("{title}. {}", peaks.join(", ")),
        size: SIZE,
        axis: Axis::Elapsed,
        x: (0.0, end),
        y: (0.0, highest),
        limit: f64::NAN,
        curves: lines
            .into_iter()
            .zip(COLOURS.into_iter().cycle())
            .map(curve)
            .collect(),
        warm_up: None,
        kills: Vec::new(),
        tips: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_drawn_with_its_name() {
        let line = |name: &str| Line {
            name: name.to_owned(),
            points: vec![(0.0, 5.0 * MB), (1.0, 9.0 * MB)],
        };
        let picture = lines("", "", vec![line("one"), line("two")]).picture("a <title>");
        assert_eq!(picture.matches("class=\"line-").count(), 4);
        assert!(picture.contains(">one<") && picture.contains("two: peak 9.00 MB"));
        assert!(picture.contains("a &lt;title&gt;") && picture.ends_with("</svg>"));
    }
}
