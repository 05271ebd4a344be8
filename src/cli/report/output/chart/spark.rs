//! The whole series in the height of a line of text.

use super::frame::{chart, thinned};
use super::scale::Scale;
use super::svg::{polyline, steps, Svg};
use crate::report::analyse::ProcessReport;
use crate::report::model::Size;
use crate::report::units::size;

const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 26.0;

pub fn line(report: &ProcessReport, id: &str) -> String {
    let Some(series) = report.series() else {
        return String::new();
    };
    let rss = series.on_axis().map(|(x, p)| (x, p.sizes[Size::Rss]));
    let points: Vec<(f64, f64)> = rss.collect();
    let ends = |of: fn(f64, f64) -> f64| points.iter().map(|p| p.1).reduce(of).unwrap_or(0.0);
    let (low, high) = (ends(f64::min), ends(f64::max));
    // A flat process should look flat: never less than a tenth of its size from edge to edge.
    let low = low.min(0.9 * high);
    let first = points.first().map_or(0.0, |p| p.0);
    let last = points.last().map_or(0.0, |p| p.0);
    let x = Scale::new((first, last), (2.0, WIDTH - 5.0));
    let y = Scale::new((low, high), (HEIGHT - 4.0, 4.0));
    let mut svg = Svg::default();
    let places = thinned(&points, 60).into_iter();
    let places: Vec<_> = places.map(|(a, b)| (x.place(a), y.place(b))).collect();
    svg.path("spark", &polyline(steps(&places)));
    if let Some(&end) = places.last() {
        svg.dot("spark-end", end, "");
    }
    let (first, last) = (size(series.first_rss()), size(series.last_rss()));
    let text = format!("from {first} to {last}");
    chart(id, (WIDTH, HEIGHT), "RSS over the rounds", &text, &svg.out)
}
