//! Memory over the rounds, at the stage that decided the verdict: a chart and a sparkline.

use std::collections::BTreeMap;

use super::frame::{svg_element, thinned, Frame};
use super::scale::{count_ticks, Scale};
use super::svg::{area, polyline, steps, Svg};
use crate::report::analyse::stats::median;
use crate::report::analyse::{ProcessReport, Quantity};
use crate::report::explain::live_suffix;
use crate::report::model::{Point, Series, Size, Sizes};
use crate::report::units::{range, signed_size, size, Amount, MB};

const MAX_POINTS: usize = 240;

type Points = Vec<(f64, f64)>;

pub fn chart(report: &ProcessReport, id: &str) -> Option<String> {
    let series = report.series().filter(|series| series.len() > 1)?;
    let points = series.drawn();
    let curves = Curves::of(report, &points);
    let ends = (points.first()?.0, points.last()?.0);
    let limit = report.process.cgroup_limit;
    let mut frame = Frame::new(ends, curves.y_range(), limit, 0.0);
    let unit = report.finding.unit.name();
    frame.axes(&count_ticks(frame.x.from, frame.x.to, 10.0), unit);
    warm_up_band(&mut frame, report);
    let shows_file = curves.shows_file(&frame);
    curves.draw(&mut frame, shows_file);
    tooltips(&mut frame, &points, &curves.rss, unit);
    trend_line(&mut frame, report, &points);
    frame.limit_line();
    let note = format!("at {}", report.finding.stage);
    frame.title(&format!("Over {unit}s"), &note);
    curves.legend(&mut frame, shows_file, report.growth().is_some());
    let title = format!("{}: memory over {unit}s", report.full_name());
    Some(frame.finish(id, &title, &description(report)))
}

/// The curves of the chart. One without known values is empty.
struct Curves {
    rss: Points,
    live: Points,
    /// Live, cached and retained memory together.
    held: Points,
    swap: Points,
    file: Points,
    /// The lowest and the highest RSS over all stages.
    lowest: Points,
    highest: Points,
}

impl Curves {
    fn of(report: &ProcessReport, points: &[(f64, &Point)]) -> Curves {
        let curve = |value: &dyn Fn(&Sizes) -> f64| -> Points {
            let values = points.iter().map(|(x, point)| (*x, value(&point.sizes)));
            let known = values.filter(|(_, y)| !y.is_nan());
            thinned(&known.collect::<Points>(), MAX_POINTS)
        };
        let (lowest, highest) = range_of_stages(report);
        Curves {
            rss: curve(&|s| s[Size::Rss]),
            live: curve(&|s| s[Size::Live]),
            held: curve(&|s| s[Size::Live] + s.kept_free()),
            swap: curve(&|s| s[Size::Swap]),
            file: curve(&Sizes::file_backed),
            lowest,
            highest,
        }
    }

    fn has_swap(&self) -> bool {
        self.swap.iter().any(|(_, y)| *y > 0.0)
    }

    /// File-backed memory is drawn if it rises visibly above the lower edge.
    fn shows_file(&self, frame: &Frame) -> bool {
        let min_visible = frame.y.from + 0.05 * (frame.y.to - frame.y.from);
        self.file.iter().any(|(_, bytes)| *bytes > min_visible)
    }

    /// Starts at zero if an area is filled, because its height shows its size. Lines alone may start
    /// far above zero.
    fn y_range(&self) -> (f64, f64) {
        let curves = [&self.rss, &self.live, &self.lowest, &self.highest];
        let values = || curves.into_iter().flatten().map(|(_, y)| *y);
        let low = values().fold(f64::INFINITY, f64::min);
        let high = values().fold(MB, f64::max);
        let is_filled = !self.highest.is_empty() || !self.held.is_empty();
        let is_far_above_zero = low.is_finite() && low > 0.5 * high;
        match is_far_above_zero && !is_filled && !self.has_swap() {
            true => (low, high),
            false => (0.0, high),
        }
    }

    fn draw(&self, frame: &mut Frame, shows_file: bool) {
        for (class, upper, lower) in [
            ("fill-range", &self.highest, &self.lowest),
            ("fill-held", &self.held, &self.live),
        ] {
            let path = area(&frame.steps(upper), &frame.steps(lower));
            frame.svg.path(class, &path);
        }
        for (class, curve, is_shown) in [
            ("swap", &self.swap, self.has_swap()),
            ("file", &self.file, shows_file),
            ("live", &self.live, true),
            ("rss", &self.rss, true),
        ] {
            if is_shown {
                let path = polyline(frame.steps(curve));
                frame.svg.path(class, &path);
            }
        }
    }

    fn legend(&self, frame: &mut Frame, shows_file: bool, shows_trend: bool) {
        for (class, name, is_shown) in [
            ("rss", "RSS", true),
            ("live", "live", !self.live.is_empty()),
            ("fill-held", "cached + retained", !self.held.is_empty()),
            ("file", "file", shows_file),
            ("trend", "trend", shows_trend),
            ("swap", "swap", self.has_swap()),
            ("fill-range", "all stages", !self.highest.is_empty()),
        ] {
            if is_shown {
                frame.legend(class, name);
            }
        }
    }
}

/// A dot with a tooltip for each point. Crowded dots are invisible and only have a tooltip.
fn tooltips(frame: &mut Frame, points: &[(f64, &Point)], rss: &Points, unit: &str) {
    const MAX_DOTS: usize = 60;
    let is_crowded = rss.len() > MAX_DOTS;
    let class = if is_crowded { "hit" } else { "dot" };
    for (x, bytes) in rss {
        let point = points.iter().find(|(at, _)| at == x);
        let live = point.map_or(f64::NAN, |(_, point)| point.sizes[Size::Live]);
        let text = format!("{unit} {x:.0}: RSS {}{}", size(*bytes), live_suffix(live));
        let at = frame.place(*x, *bytes);
        frame.svg.dot(class, at, &text);
    }
}

/// The slope that the verdict rests on, through the median of the settled rounds.
fn trend_line(frame: &mut Frame, report: &ProcessReport, points: &[(f64, &Point)]) {
    let Some(slope) = report.growth() else { return };
    if !matches!(
        report.finding.quantity,
        Quantity::Footprint | Quantity::WithoutCached
    ) {
        return;
    }
    let from = report.finding.trend.settled_from;
    let settled = points.iter().filter(|(x, _)| *x >= from);
    let offsets = settled.map(|(x, p)| p.sizes.footprint() - slope.per_x * x);
    let offset = median(&offsets.collect::<Vec<_>>());
    let at = |x: f64| frame.place(x, offset + slope.per_x * x);
    let (start, end) = (at(from), at(frame.x.to));
    frame.svg.line("trend", start, end);
}

fn description(report: &ProcessReport) -> String {
    let finding = &report.finding;
    format!(
        "RSS at {} ends at {}; peak {}; slope {} per {}. Verdict: {}.",
        finding.stage,
        size(report.last_rss),
        size(report.process.peak_rss),
        signed_size(finding.trend.slope.per_x),
        finding.unit,
        finding.verdict.name(),
    )
}

/// The lowest and the highest RSS of any stage in each round; empty for a single stage.
fn range_of_stages(report: &ProcessReport) -> (Points, Points) {
    let mut rounds: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    let stages = report.process.stages.iter().map(|(_, series)| series);
    let regular: Vec<&Series> = stages.filter(|series| series.len() > 2).collect();
    if regular.len() < 2 {
        return (Vec::new(), Vec::new());
    }
    for series in regular {
        for (x, point) in series.drawn() {
            let (low, high) = rounds.entry(x as u64).or_insert((f64::INFINITY, 0.0));
            *low = low.min(point.sizes[Size::Rss]);
            *high = high.max(point.peak);
        }
    }
    let curve = |end: fn(&(f64, f64)) -> f64| -> Points {
        let all = rounds.iter().map(|(x, ends)| (*x as f64, end(ends)));
        thinned(&all.collect::<Points>(), MAX_POINTS)
    };
    (curve(|ends| ends.0), curve(|ends| ends.1))
}

fn warm_up_band(frame: &mut Frame, report: &ProcessReport) {
    let trend = &report.finding.trend;
    if trend.warm_up == 0 || trend.settled_from <= frame.x.from {
        return;
    }
    let (left, top) = frame.place(frame.x.from, frame.y.to);
    let (right, bottom) = frame.place(trend.settled_from, frame.y.from);
    let band = (right - left, bottom - top);
    let tooltip = "warm-up, left out";
    frame.svg.rect("warm-up", (left, top), band, tooltip);
    if right - left > 58.0 {
        let corner = (left + 5.0, top + 15.0);
        frame.svg.text("note", corner, "start", "warm-up");
    }
}

const SPARK_WIDTH: f64 = 120.0;
const SPARK_HEIGHT: f64 = 26.0;

/// RSS over the rounds, in the height of a line of text.
pub fn sparkline(report: &ProcessReport, id: &str) -> String {
    let Some(series) = report.series() else {
        return String::new();
    };
    let rss = series.drawn().into_iter();
    let points: Points = rss.map(|(x, p)| (x, p.sizes[Size::Rss])).collect();
    let end = |of: fn(f64, f64) -> f64| points.iter().map(|p| p.1).reduce(of).unwrap_or(0.0);
    let (low, high) = (end(f64::min), end(f64::max));
    // The height is at least a tenth of the size, so that a flat process looks flat.
    let low = low.min(0.9 * high);
    let first = points.first().map_or(0.0, |p| p.0);
    let last = points.last().map_or(0.0, |p| p.0);
    let x = Scale::new((first, last), (2.0, SPARK_WIDTH - 5.0));
    let y = Scale::new((low, high), (SPARK_HEIGHT - 4.0, 4.0));
    let mut svg = Svg::default();
    let places = thinned(&points, 60).into_iter();
    let places: Vec<_> = places.map(|(a, b)| (x.place(a), y.place(b))).collect();
    svg.path("spark", &polyline(steps(&places)));
    if let Some(&end) = places.last() {
        svg.dot("spark-end", end, "");
    }
    let (first, last) = (series.first_rss(), series.last_rss());
    let text = format!("from {}", range(first, "to", last, Amount::Size));
    let dimensions = (SPARK_WIDTH, SPARK_HEIGHT);
    svg_element(id, dimensions, "RSS over the rounds", &text, &svg.out)
}
