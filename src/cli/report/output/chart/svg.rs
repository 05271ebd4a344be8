//! Draws a chart: axes and grid, curves, the warm-up, tooltips, kills, and the line of the memory limit.

use maud::{html, Markup, PreEscaped};

use super::scale::{scale, Axis};
use super::{highest, sample, Chart, STYLE};
use crate::report::units::{size, MB};

const LEFT: f64 = 76.0;
/// Half a label.
const RIGHT: f64 = LABEL / 2.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 42.0;
/// Width of a label.
const LABEL: f64 = 75.0;
const SIZE_TICKS: f64 = 5.0;

impl Chart {
    pub(super) fn svg(&self, (width, height): (f64, f64), tips: &[(f64, String)]) -> Markup {
        let peaks = self.curves.iter().map(|(_, points)| highest(points));
        let peak = peaks.fold(MB, f64::max);
        // A limit far above the data would flatten the curves. It is named instead of drawn.
        let near = self.limit.filter(|limit| *limit <= 1.7 * peak);
        let (right, bottom) = (width - RIGHT, height - BOTTOM);
        let sizes = (
            0.0,
            Axis::Bytes.end(near.unwrap_or(peak).max(peak), SIZE_TICKS),
        );
        let (x, y) = (scale(self.x, (LEFT, right)), scale(sizes, (bottom, TOP)));
        let places: Vec<f64> = tips.iter().map(|(at, _)| x(*at)).collect();
        let between = places.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0);
        let edges: Vec<f64> = [LEFT].into_iter().chain(between).chain([right]).collect();
        let names: Vec<String> = self.keys().into_iter().map(|(_, name)| name).collect();
        html! {
            svg.chart xmlns="http://www.w3.org/2000/svg" role="img" width=(width) height=(height)
                viewBox={ "0 0 " (width) " " (height) } aria-label={ (self.title) ", " (self.note) ": " (names.join(", ")) } {
                @for (value, label) in Axis::Bytes.ticks(sizes, SIZE_TICKS) {
                    @let y = y(value);
                    path.grid d={ "M" (LEFT) " " (px(y)) "H" (right) } {}
                    text x=(LEFT - 7.0) y=(px(y + 5.0)) text-anchor="end" { (label) }
                }
                @for (value, label) in self.axis.ticks(self.x, (right - LEFT) / LABEL) {
                    @let x = x(value);
                    path.axis d={ "M" (px(x)) " " (bottom) "v4" } {}
                    text x=(px(x)) y=(bottom + 18.0) text-anchor="middle" { (label) }
                }
                path.axis d={ "M" (LEFT) " " (bottom) "H" (right) } {}
                text x=((LEFT + right) / 2.0) y=(height - 6.0) text-anchor="middle" { (self.axis.name(self.x.0)) }
                @for ((class, _), points) in self.curves.iter().rev() { path class=(class) d=(path(points, &x, &y)) {} }
                @if let Some(end) = self.warm_up {
                    rect.warm-up x=(LEFT) y=(TOP) width=(px(x(end) - LEFT)) height=(bottom - TOP) {}
                    text x=(LEFT) y=(TOP - 5.0) { "left out" }
                }
                @for ((_, text), edges) in tips.iter().zip(edges.windows(2)) {
                    rect.hover x=(px(edges[0])) y=(TOP) width=(px(edges[1] - edges[0])) height=(bottom - TOP) {
                        title { (text) }
                    }
                }
                @for (t, name) in &self.kills {
                    @let x = px(x(*t));
                    path.kill d={ "M" (x) " " (bottom) "V" (TOP) } {}
                    circle.kill-dot cx=(x) cy=(TOP) r="2.6" { title { (name) } }
                }
                @if let Some(limit) = self.limit {
                    @let (at, is_drawn) = (y(limit), limit <= sizes.1);
                    @if is_drawn { path.limit d={ "M" (LEFT) " " (px(at)) "H" (right) } {} }
                    text.limit-name x=(right) y=(px(at - 5.0)) text-anchor="end" {
                        "limit " (size(limit)) @if !is_drawn { " \u{2191}" }
                    }
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
                g transform="translate(16 36)" { (self.svg(self.size, &[])) }
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

/// A line through the points.
fn path(points: &[(f64, f64)], x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) -> String {
    let place = |(at, bytes): &(f64, f64)| format!("{:.1} {:.1}", x(*at), y(*bytes));
    let places: Vec<String> = points.iter().map(place).collect();
    format!("M{}", places.join(" "))
}

/// A coordinate.
fn px(place: f64) -> String {
    format!("{place:.1}")
}
