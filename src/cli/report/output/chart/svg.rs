//! Draws a chart: axes and grid, the warm-up, curves, tooltips, kills, and the line of the memory limit.

use std::fmt::Write;

use maud::{html, Markup, PreEscaped};

use super::scale::{size_range, size_ticks, Scale};
use super::{sample, Chart, STYLE};
use crate::report::units::size;

const LEFT: f64 = 76.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 42.0;
/// Width of a letter of a label.
const LETTER: f64 = 7.8;

/// The part of a chart between its axes.
struct Plot {
    x: Scale,
    y: Scale,
    right: f64,
    bottom: f64,
}

impl Chart {
    /// A screen reader reads the label.
    pub(super) fn svg(&self, (width, height): (f64, f64)) -> Markup {
        let (low, mut high) = self.y;
        // A limit far above the data would flatten the curves. It is named instead of drawn.
        if self.limit <= 1.7 * high {
            high = high.max(self.limit);
        }
        let (right, bottom) = (width - RIGHT, height - BOTTOM);
        let plot = Plot {
            x: Scale::new(self.x, (LEFT, right)),
            y: Scale::new(size_range(low, high), (bottom, TOP)),
            right,
            bottom,
        };
        html! {
            svg.chart xmlns="http://www.w3.org/2000/svg" role="img" width=(width) height=(height)
                viewBox={ "0 0 " (width) " " (height) } aria-label=(self.label) {
                (self.axes(&plot, width))
                text x=((LEFT + right) / 2.0) y=(height - 6.0) text-anchor="middle" { (self.axis.name(self.x.0)) }
                (self.warm_up_band(&plot))
                @for curve in self.curves.iter().rev() { path class=(curve.class) d=(plot.path(&curve.points)) {} }
                (self.tooltips(&plot))
                (self.kill_marks(&plot))
                (self.limit_line(&plot))
            }
        }
    }

    fn axes(&self, plot: &Plot, width: f64) -> Markup {
        // The last label would be cut off at the edge.
        let middle = |x: f64, label: &str| {
            let half = LETTER * label.chars().count() as f64 / 2.0;
            x.min(width - half - 1.0)
        };
        html! {
            @for (value, label) in size_ticks(plot.y.from, plot.y.to, 5.0) {
                @let y = plot.y.place(value);
                path.grid d={ "M" (LEFT) " " (px(y)) "H" (plot.right) } {}
                text x=(LEFT - 7.0) y=(px(y + 5.0)) text-anchor="end" { (label) }
            }
            @for (value, label) in self.axis.ticks((plot.x.from, plot.x.to), width) {
                @let x = plot.x.place(value);
                path.axis d={ "M" (px(x)) " " (plot.bottom) "v4" } {}
                text x=(px(middle(x, &label))) y=(plot.bottom + 18.0) text-anchor="middle" { (label) }
            }
            path.axis d={ "M" (LEFT) " " (plot.bottom) "H" (plot.right) } {}
        }
    }

    fn warm_up_band(&self, plot: &Plot) -> Markup {
        html! {
            @if let Some(end) = self.warm_up.filter(|end| *end > self.x.0) {
                @let width = plot.x.place(end) - LEFT;
                rect.warm-up x=(LEFT) y=(TOP) width=(px(width)) height=(plot.bottom - TOP) {
                    title { "warm-up, left out" }
                }
                @if width > 58.0 { text x=(LEFT + 5.0) y=(TOP + 15.0) { "warm-up" } }
            }
        }
    }

    fn tooltips(&self, plot: &Plot) -> Markup {
        let places: Vec<f64> = self.tips.iter().map(|(x, _)| plot.x.place(*x)).collect();
        let between = places.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0);
        let edges: Vec<f64> = [LEFT]
            .into_iter()
            .chain(between)
            .chain([plot.right])
            .collect();
        html! {
            @for ((_, text), edges) in self.tips.iter().zip(edges.windows(2)) {
                rect.hover x=(px(edges[0])) y=(TOP) width=(px(edges[1] - edges[0])) height=(plot.bottom - TOP) {
                    title { (text) }
                }
            }
        }
    }

    fn kill_marks(&self, plot: &Plot) -> Markup {
        html! {
            @for (t, name) in &self.kills {
                @let x = px(plot.x.place(*t));
                path.kill d={ "M" (x) " " (plot.bottom) "V" (TOP) } {}
                circle.kill-dot cx=(x) cy=(TOP) r="2.6" { title { (name) } }
            }
        }
    }

    fn limit_line(&self, plot: &Plot) -> Markup {
        let is_drawn = self.limit <= plot.y.to;
        let y = plot.y.place(self.limit);
        html! {
            @if is_drawn { path.limit d={ "M" (LEFT) " " (px(y)) "H" (plot.right) } {} }
            @if !self.limit.is_nan() {
                text.limit-name x=(plot.right) y=(px(y - 5.0)) text-anchor="end" {
                    "limit " (size(self.limit)) @if !is_drawn { " \u{2191}" }
                }
            }
        }
    }

    /// The chart with its legend as a file of its own.
    pub fn picture(&self, title: &str) -> String {
        const KEY_HEIGHT: f64 = 20.0;
        let keys = self.keys();
        let (width, below) = (self.size.0 + 32.0, self.size.1 + 44.0);
        let height = below + 12.0 + KEY_HEIGHT * keys.len() as f64;
        let picture = html! {
            svg xmlns="http://www.w3.org/2000/svg" role="img" width=(width) height=(height) aria-label=(title) {
                style { (PreEscaped(STYLE)) }
                rect.page width="100%" height="100%" {}
                text.title x="16" y="26" { (title) }
                g transform="translate(16 36)" { (self.svg(self.size)) }
                @for (place, (class, name)) in keys.iter().enumerate() {
                    g transform={ "translate(92 " (below + KEY_HEIGHT * place as f64) ")" } {
                        (sample(class))
                        text x="20" y="11" { (name) }
                    }
                }
            }
        };
        picture.into_string()
    }
}

impl Plot {
    /// A line through the points.
    fn path(&self, points: &[(f64, f64)]) -> String {
        let mut path = String::new();
        let mut last = (String::new(), String::new());
        for (x, y) in points {
            let place = (px(self.x.place(*x)), px(self.y.place(*y)));
            let _ = match (path.is_empty(), place.0 == last.0, place.1 == last.1) {
                (true, ..) => write!(path, "M{} {}", place.0, place.1),
                (false, true, true) => Ok(()),
                (false, true, false) => write!(path, "V{}", place.1),
                (false, false, true) => write!(path, "H{}", place.0),
                (false, false, false) => write!(path, "L{} {}", place.0, place.1),
            };
            last = place;
        }
        path
    }
}

/// A coordinate.
fn px(place: f64) -> String {
    format!("{place:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_only_the_coordinate_that_changes() {
        let plot = Plot {
            x: Scale::new((0.0, 10.0), (0.0, 10.0)),
            y: Scale::new((0.0, 10.0), (0.0, 10.0)),
            right: 10.0,
            bottom: 10.0,
        };
        let points = [(0.0, 1.0), (2.0, 3.25), (4.0, 3.25), (4.0, 5.0), (4.0, 5.0)];
        assert_eq!(plot.path(&points), "M0.0 1.0L2.0 3.2H4.0V5.0");
        assert_eq!(plot.path(&[]), "");
    }
}
