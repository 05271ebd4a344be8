//! The charts of the page: all processes over time, one process over its rounds, and its stages. `flarena compare` has
//! lines over time.
//!
//! Each chart with axes is a [`Chart`], which `svg` draws. The colours are in one style sheet, which adapts to light and
//! dark mode.

mod lines;
mod rounds;
mod scale;
mod stages;
mod svg;
mod together;

use maud::{html, Markup};

pub use lines::{lines, Line};
pub use rounds::chart as rounds;
use scale::Axis;
pub use stages::chart as stages;
pub use together::chart as together;

/// Colours and lines, in light and dark.
pub const STYLE: &str = include_str!("chart.css");

/// On a phone text must stay readable, so the chart is drawn for it.
const PHONE: (f64, f64) = (330.0, 240.0);

type Points = Vec<(f64, f64)>;

/// A row of the legend: the class of its line or area, and its name.
type Key = (&'static str, String);

/// Sizes over an axis.
pub struct Chart {
    title: String,
    note: String,
    /// For a screen reader.
    label: String,
    /// Width and height on a page.
    size: (f64, f64),
    axis: Axis,
    x: (f64, f64),
    /// The range of sizes. The axis includes the limit if that is close.
    y: (f64, f64),
    /// NaN without a limit.
    limit: f64,
    /// The first one is drawn over the others.
    curves: Vec<Curve>,
    /// The end of the warm-up.
    warm_up: Option<f64>,
    /// Time and name of each process that was killed.
    kills: Vec<(f64, String)>,
    /// The text that a part of the axis shows on hover: the part that is nearest to this place.
    tips: Vec<(f64, String)>,
}

/// A line or an area, by its class.
struct Curve {
    class: &'static str,
    name: String,
    points: Points,
}

impl Chart {
    /// Heading, chart and legend.
    pub fn figure(&self) -> Markup {
        let charts = html! {
            div.on-page { (self.svg(self.size)) }
            div.on-phone { (self.svg(PHONE)) }
        };
        figure(&self.title, &self.note, &charts, &self.keys())
    }

    fn keys(&self) -> Vec<Key> {
        let curves = self.curves.iter();
        let curves = curves.map(|curve| (curve.class, curve.name.clone()));
        let kills = (!self.kills.is_empty()).then(|| ("kill-dot", "killed".to_owned()));
        curves.chain(kills).collect()
    }
}

/// Heading, chart and legend.
fn figure(title: &str, note: &str, chart: &Markup, keys: &[Key]) -> Markup {
    html! {
        figure {
            figcaption { b { (title) } " " (note) }
            (chart)
            ul.legend {
                @for (class, name) in keys { li { (sample(class)) span title=(name) { (name) } } }
            }
        }
    }
}

/// A short line or a small area, as in the chart.
fn sample(class: &str) -> Markup {
    let is_area = ["fill", "area", "kill"]
        .iter()
        .any(|start| class.starts_with(start));
    html! {
        svg aria-hidden="true" width="14" height="11" {
            @if is_area { rect class=(class) width="14" height="11" {} } @else { path class=(class) d="M0 6H14" {} }
        }
    }
}

/// A name that fits beside the data, and the whole name on hover.
pub fn short(name: &str) -> Markup {
    html! { span title=(name) { (shortened(name)) } }
}

/// A name cut in its middle. Its end stays, because names often differ only there: `a-program-…name 10`.
fn shortened(name: &str) -> String {
    const LETTERS: usize = 24;
    const LAST: usize = 10;
    let count = name.chars().count();
    if count <= LETTERS {
        return name.to_owned();
    }
    let begin = name.chars().take(LETTERS - LAST - 1);
    let end = name.chars().skip(count - LAST);
    begin.chain(['\u{2026}']).chain(end).collect()
}

/// Each value holds until the next point.
fn steps(points: &[(f64, f64)]) -> Points {
    let mut corners: Points = points.iter().take(1).copied().collect();
    for pair in points.windows(2) {
        corners.extend([(pair[1].0, pair[0].1), pair[1]]);
    }
    corners
}

/// The outline of the area between two lines.
fn area(upper: Points, lower: Points) -> Points {
    upper.into_iter().chain(lower.into_iter().rev()).collect()
}

/// At most about `max` points that keep all peaks, the first and the last point: the lowest and the
/// highest of each section.
fn thinned<P: Copy>(points: &[P], max: usize, y: impl Fn(&P) -> f64) -> Vec<P> {
    if points.len() <= max {
        return points.to_vec();
    }
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

    #[test]
    fn a_shortened_name_keeps_its_end_and_has_the_whole_name_on_hover() {
        assert_eq!(shortened("trainer 10"), "trainer 10");
        let [a, b] =
            [9, 10].map(|pid| shortened(&format!("a-program-with-a-very-long-name {pid}")));
        assert_eq!(
            [&*a, &*b],
            [
                "a-program-wit\u{2026}ong-name 9",
                "a-program-wit\u{2026}ng-name 10"
            ]
        );
        let hover = short("<a-program-with-a-very-long-name>").into_string();
        assert!(
            hover.starts_with("<span title=\"&lt;a-program-with-a-very-long-name&gt;\">"),
            "{hover}"
        );
    }

    #[test]
    fn a_step_keeps_the_earlier_value() {
        let corners = [(0.0, 1.0), (2.0, 1.0), (2.0, 5.0)];
        assert_eq!(steps(&[(0.0, 1.0), (2.0, 5.0)]), corners);
        assert_eq!(steps(&[(0.0, 1.0)]), [(0.0, 1.0)]);
        assert!(steps(&[]).is_empty());
    }

    #[test]
    fn thinned_points_keep_peaks_and_both_ends() {
        let height = |i: usize| if i == 3333 { 99.0 } else { (i % 7) as f64 };
        let points: Points = (0..10_000).map(|i| (i as f64, height(i))).collect();
        let kept = thinned(&points, 240, |point| point.1);
        assert!(kept.len() <= 242, "{}", kept.len());
        assert_eq!((kept[0], kept[kept.len() - 1]), (points[0], points[9999]));
        assert!(kept.contains(&points[3333]));
    }
}
