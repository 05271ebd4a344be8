//! The charts of the page: all processes over time, one process over its rounds, and its stages. `flarena compare` has
//! lines over time.
//!
//! Each chart with axes is a [`Chart`], which `svg` draws. The colours are in one style sheet, which adapts to light and
//! dark mode.

mod areas;
mod scale;
mod svg;

use maud::{html, Markup};

use crate::report::units::size;
pub use areas::{rounds, stages, together};
use scale::Axis;

/// Colours and lines, in light and dark.
pub const STYLE: &str = include_str!("chart.css");

/// On a phone text must stay readable, so the chart is drawn for it.
const PHONE: (f64, f64) = (330.0, 240.0);

type Points = Vec<(f64, f64)>;

/// Points of a line of [`lines`].
const MAX_POINTS: usize = 600;
/// Colours of lines. More lines have these again.
const COLOURS: usize = 7;

/// A row of the legend: the class of its line or area, and its name.
type Key = (String, String);

/// Sizes over an axis. The axis of sizes begins at zero, and includes the limit if that is close.
#[derive(Default)]
pub struct Chart {
    title: String,
    note: String,
    /// Width and height on a page.
    size: (f64, f64),
    axis: Axis,
    x: (f64, f64),
    limit: Option<f64>,
    /// Lines or areas. The first one is drawn over the others.
    curves: Vec<(Key, Points)>,
    /// The end of the warm-up.
    warm_up: Option<f64>,
    /// Time and name of each process that was killed.
    kills: Vec<(f64, String)>,
    /// The text that a part of the axis shows on hover: the part that is nearest to this place.
    tips: Vec<(f64, String)>,
}

impl Chart {
    /// Heading, chart and legend.
    pub fn figure(&self) -> Markup {
        let charts = html! {
            div.on-page { (self.svg(self.size, &self.tips)) }
            div.on-phone { (self.svg(PHONE, &[])) }
        };
        figure(&self.title, &self.note, &charts, &self.keys())
    }

    fn keys(&self) -> Vec<Key> {
        let curves = self.curves.iter().map(|(key, _)| key.clone());
        let kills = (!self.kills.is_empty()).then(|| key("kill-dot", "killed"));
        curves.chain(kills).collect()
    }
}

fn key(class: &str, name: &str) -> Key {
    (class.to_owned(), name.to_owned())
}

/// The highest point.
fn highest(points: &Points) -> f64 {
    points.iter().map(|point| point.1).fold(0.0, f64::max)
}

/// The memory of several runs over the same time, in seconds and bytes.
pub fn lines(note: String, lines: Vec<(String, Points)>) -> Chart {
    let last = lines.iter().flat_map(|(_, points)| points.last());
    let end = last.map(|point| point.0).fold(0.1, f64::max);
    let curve = |(place, (name, points)): (usize, (String, Points))| {
        let name = format!("{name}: peak {}", size(highest(&points)));
        let class = format!("line-{}", place % COLOURS);
        ((class, name), thinned(&points, MAX_POINTS, |point| point.1))
    };
    let lines = lines.into_iter().enumerate();
    let lines = lines.filter(|(_, (_, points))| !points.is_empty());
    Chart {
        title: "Memory over time".to_owned(),
        note,
        size: (620.0, 270.0),
        x: (0.0, end),
        curves: lines.map(curve).collect(),
        ..Chart::default()
    }
}

/// Heading, chart and legend.
fn figure(title: &str, note: &str, chart: &Markup, keys: &[Key]) -> Markup {
    html! {
        figure {
            figcaption { b { (title) } " " (note) }
            (chart)
            ul.legend { @for (class, name) in keys { li { (sample(class)) (name) } } }
        }
    }
}

/// A short line or a small area, as in the chart.
fn sample(class: &str) -> Markup {
    html! {
        svg aria-hidden="true" width="14" height="11" {
            @if class.starts_with("line") { path class=(class) d="M0 6H14" {} }
            @else { rect class=(class) width="14" height="11" {} }
        }
    }
}

/// At most about `max` points that keep all peaks, the first and the last point: the lowest and the
/// highest of each section.
fn thinned<P: Copy>(points: &[P], max: usize, y: impl Fn(&P) -> f64) -> Vec<P> {
    let width = points.len().div_ceil(max / 2);
    let by_y = |a: &usize, b: &usize| y(&points[*a]).total_cmp(&y(&points[*b]));
    let mut kept = vec![0, points.len() - 1];
    for start in (0..points.len()).step_by(width) {
        let section = start..points.len().min(start + width);
        kept.extend(section.clone().min_by(by_y));
        kept.extend(section.max_by(by_y));
    }
    kept.sort_unstable();
    kept.dedup();
    kept.into_iter().map(|place| points[place]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::units::MB;

    #[test]
    fn thinned_points_keep_peaks_and_both_ends() {
        let height = |i: usize| if i == 3333 { 99.0 } else { (i % 7) as f64 };
        let points: Points = (0..10_000).map(|i| (i as f64, height(i))).collect();
        let kept = thinned(&points, 240, |point| point.1);
        assert!(kept.len() <= 242, "{}", kept.len());
        assert_eq!((kept[0], kept[kept.len() - 1]), (points[0], points[9999]));
        assert!(kept.contains(&points[3333]));
    }

    #[test]
    fn each_line_is_drawn_with_its_name() {
        let points = vec![(0.0, 5.0 * MB), (1.0, 9.0 * MB)];
        let two = ["one", "two"].map(|name| (name.to_owned(), points.clone()));
        let picture = lines(String::new(), two.to_vec()).picture("a <title>");
        assert_eq!(picture.matches("class=\"line-").count(), 4);
        assert!(picture.contains(">one: peak 9.00 MB<") && picture.contains(">two: peak 9.00 MB<"));
        assert!(picture.contains("a &lt;title&gt;") && picture.ends_with("</svg>"));
    }
}
