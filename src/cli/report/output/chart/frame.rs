//! The frame of a chart: axes, grid, and the line of the memory limit.

use maud::{html, Markup};

use super::scale::{size_range, size_ticks, Scale};
use super::{steps, Points};
use crate::report::units::size;

const LEFT: f64 = 76.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 42.0;
/// Width of a letter of a label.
const LETTER: f64 = 7.8;

pub struct Frame {
    pub x: Scale,
    pub y: Scale,
    /// NaN without a limit.
    limit: f64,
    width: f64,
    height: f64,
}

impl Frame {
    /// `x` and `y` are the ranges of values. The y axis includes the limit if that is close.
    pub fn new(
        (width, height): (f64, f64),
        x: (f64, f64),
        (low, mut high): (f64, f64),
        limit: f64,
    ) -> Self {
        // A limit far above the data would flatten the curves. It is named instead of drawn.
        if limit <= 1.7 * high {
            high = high.max(limit);
        }
        Frame {
            x: Scale::new(x, (LEFT, width - RIGHT)),
            y: Scale::new(size_range(low, high), (height - BOTTOM, TOP)),
            limit,
            width,
            height,
        }
    }

    pub fn place(&self, x: f64, y: f64) -> (f64, f64) {
        (self.x.place(x), self.y.place(y))
    }

    /// The places of these values as steps: each value holds until the next.
    pub fn steps(&self, values: &[(f64, f64)]) -> Points {
        let places: Points = values.iter().map(|(x, y)| self.place(*x, *y)).collect();
        steps(&places)
    }

    fn axes(&self, x_ticks: &[(f64, String)], x_name: &str) -> Markup {
        let (right, bottom) = (self.width - RIGHT, self.height - BOTTOM);
        // The last label would be cut off at the edge.
        let middle = |x: f64, label: &str| {
            let half = LETTER * label.chars().count() as f64 / 2.0;
            x.min(self.width - half - 1.0)
        };
        html! {
            @for (value, label) in size_ticks(self.y.from, self.y.to, 5.0) {
                @let y = self.y.place(value);
                path.grid d={ "M" (LEFT as i64) " " (px(y)) "H" (right) } {}
                text x=(LEFT - 7.0) y=(px(y + 5.0)) text-anchor="end" { (label) }
            }
            @for (value, label) in x_ticks {
                @let x = self.x.place(*value);
                path.axis d={ "M" (px(x)) " " (bottom) "v4" } {}
                text x=(px(middle(x, label))) y=(bottom + 18.0) text-anchor="middle" { (label) }
            }
            path.axis d={ "M" (LEFT) " " (bottom) "H" (right) } {}
            text x=((LEFT + right) / 2.0) y=(self.height - 6.0) text-anchor="middle" { (x_name) }
        }
    }

    fn limit_line(&self) -> Markup {
        let is_drawn = self.limit <= self.y.to;
        let (left, right, y) = (LEFT, self.width - RIGHT, self.y.place(self.limit));
        html! {
            @if is_drawn { path.limit d={ "M" (left) " " (px(y)) "H" (right) } {} }
            @if !self.limit.is_nan() {
                text.limit-name x=(right) y=(px(y - 5.0)) text-anchor="end" {
                    "limit " (size(self.limit)) @if !is_drawn { " \u{2191}" }
                }
            }
        }
    }

    /// The finished chart. A screen reader reads the label.
    pub fn finish(
        &self,
        label: &str,
        x_ticks: &[(f64, String)],
        x_name: &str,
        body: &Markup,
    ) -> Markup {
        let (width, height) = (self.width, self.height);
        html! {
            svg.chart xmlns="http://www.w3.org/2000/svg" role="img" width=(width) height=(height)
                viewBox={ "0 0 " (width) " " (height) } aria-label=(label) {
                (self.axes(x_ticks, x_name))
                (body)
                (self.limit_line())
            }
        }
    }
}

/// A coordinate.
pub fn px(place: f64) -> String {
    format!("{place:.1}")
}
