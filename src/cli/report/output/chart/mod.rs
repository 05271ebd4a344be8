//! The charts of the page: all processes over time, one process over its rounds, and its stages. `flarena compare` has
//! lines over time.
//!
//! The colours are in one style sheet, which adapts to light and dark mode. A chart with an axis of time is drawn
//! twice: for a page, and for a phone, where text must stay readable.

mod frame;
mod layers;
mod lines;
mod rounds;
mod scale;
mod stages;
mod together;

use std::fmt::Write;

use maud::{html, Markup};

pub use layers::colours;
pub use lines::{lines, picture, Line};
pub use rounds::chart as rounds;
pub use stages::chart as stages;
pub use together::chart as together;

/// Colours and lines, in light and dark.
pub const STYLE: &str = include_str!("chart.css");

type Points = Vec<(f64, f64)>;

/// A row of the legend: the class of its line or area, and its name.
type Key = (&'static str, String);

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

/// A chart for a page, and one for a phone, each drawn by a function of its width and height.
fn on_both(wide: (f64, f64), narrow: (f64, f64), chart: impl Fn((f64, f64)) -> Markup) -> Markup {
    html! {
        div.on-page { (chart(wide)) }
        div.on-phone { (chart(narrow)) }
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

/// A line through the points.
fn polyline(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let mut d = String::new();
    for (x, y) in points {
        let _ = write!(d, "{}{x:.1} {y:.1}", if d.is_empty() { 'M' } else { 'L' });
    }
    d
}

/// The area between an upper and a lower line.
fn area(upper: &[(f64, f64)], lower: &[(f64, f64)]) -> String {
    match upper.is_empty() || lower.is_empty() {
        true => String::new(),
        false => polyline(upper.iter().chain(lower.iter().rev()).copied()) + "Z",
    }
}

/// At most about `max` points that keep all peaks, the first and the last point: the lowest and the
/// highest of each section.
fn thinned(points: &[(f64, f64)], max: usize) -> Points {
    if points.len() <= max {
        return points.to_vec();
    }
    let width = points.len().div_ceil(max / 2);
    let ends = |section: &[(f64, f64)]| {
        let by_y = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let low = *section.iter().min_by(by_y).unwrap_or(&section[0]);
        let high = *section.iter().max_by(by_y).unwrap_or(&section[0]);
        match low.0 <= high.0 {
            true => [low, high],
            false => [high, low],
        }
    };
    let first = points.first().copied();
    let last = points.last().copied();
    let sections = points.chunks(width).flat_map(ends);
    let mut kept: Points = first.into_iter().chain(sections).chain(last).collect();
    kept.dedup();
    kept
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
    fn a_line_is_open_and_an_area_is_closed() {
        assert_eq!(polyline([(0.0, 1.0), (2.0, 3.25)]), "M0.0 1.0L2.0 3.2");
        assert_eq!(area(&[(0.0, 0.0)], &[(0.0, 5.0)]), "M0.0 0.0L0.0 5.0Z");
        assert_eq!(area(&[], &[]), "");
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
        let kept = thinned(&points, 240);
        assert!(kept.len() <= 242, "{}", kept.len());
        assert_eq!((kept[0], kept[kept.len() - 1]), (points[0], points[9999]));
        assert!(kept.contains(&points[3333]));
    }
}
