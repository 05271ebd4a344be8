//! Memory over the rounds, at the stage that the verdict rests on.

use std::collections::BTreeMap;

use super::frame::{thinned, Frame};
use super::limit::{limit_line, sees_limit};
use super::scale::{counts, size_range, sizes};
use super::svg::{area, polyline, steps};
use crate::report::analysis::ProcessReport;
use crate::report::finding::Quantity;
use crate::report::model::{Series, Size, Sizes};
use crate::report::stats::median;
use crate::report::units::{change, size};

const MOST_POINTS: usize = 240;

struct Data<'a> {
    x: Vec<f64>,
    series: &'a Series,
}

impl Data<'_> {
    fn line(&self, of: impl Fn(&Sizes) -> f64) -> Vec<(f64, f64)> {
        let values = self.series.points().iter().map(|p| of(&p.sizes));
        let known = self
            .x
            .iter()
            .copied()
            .zip(values)
            .filter(|(_, y)| !y.is_nan());
        thinned(&known.collect::<Vec<_>>(), MOST_POINTS)
    }
}

pub fn chart(report: &ProcessReport, id: &str) -> Option<String> {
    let finding = &report.finding;
    let series = report.series().filter(|series| series.len() > 1)?;
    let data = Data {
        x: series.axis(),
        series,
    };
    let band = band(report);
    let (rss, live) = (data.line(|s| s[Size::Rss]), data.line(|s| s[Size::Live]));
    let swap = data.line(|s| s[Size::Swap]);
    let swaps = swap.iter().any(|(_, y)| *y > 0.0);
    let file = data.line(Sizes::file_backed);
    let range = range(&[&rss, &live, &band.0, &band.1]);
    let limit = report.process.limit;
    let range = if swaps { (0.0, range.1) } else { range };
    let range = if sees_limit(limit, range.1) {
        (range.0, f64::max(range.1, limit))
    } else {
        range
    };
    let last = data.x.last().copied().unwrap_or(0.0);
    let first = data.x.first().copied().unwrap_or(0.0);
    let mut frame = Frame::new((first, last), size_range(range.0, range.1));
    let (y, x) = (frame.y, frame.x);
    frame.axes(
        &counts(x.from, x.to, 10.0),
        &sizes(y.from, y.to, 5.0),
        finding.unit,
    );
    warm_up(&mut frame, report);
    let placed = |points: &[(f64, f64)], frame: &Frame| -> Vec<(f64, f64)> {
        let places: Vec<_> = points.iter().map(|(x, y)| frame.place(*x, *y)).collect();
        steps(&places)
    };
    let (low, high) = (placed(&band.0, &frame), placed(&band.1, &frame));
    frame.svg.path("fill-range", &area(&high, &low));
    let held = data.line(|s| s[Size::Live] + s.held_back());
    let (live_at, held_at) = (placed(&live, &frame), placed(&held, &frame));
    frame.svg.path("fill-held", &area(&held_at, &live_at));
    if swaps {
        frame.svg.path("swap", &polyline(placed(&swap, &frame)));
    }
    let draws_file = file
        .iter()
        .any(|(_, bytes)| *bytes > y.from + 0.05 * (y.to - y.from));
    if draws_file {
        frame.svg.path("file", &polyline(placed(&file, &frame)));
    }
    frame.svg.path("live", &polyline(live_at));
    frame.svg.path("rss", &polyline(placed(&rss, &frame)));
    values(&mut frame, &data, &rss, finding.unit);
    trend(&mut frame, report, &data);
    limit_line(&mut frame, limit);
    frame.title(
        &format!("Over {}s", finding.unit),
        &format!("at {}", finding.stage),
    );
    frame.legend("rss", "RSS");
    if !live.is_empty() {
        frame.legend("live", "live");
    }
    if !held.is_empty() {
        frame.legend("fill-held", "cached + retained");
    }
    if draws_file {
        frame.legend("file", "file");
    }
    if report.growth().is_some() {
        frame.legend("trend", "trend");
    }
    if swaps {
        frame.legend("swap", "swap");
    }
    if !high.is_empty() {
        frame.legend("fill-range", "all stages");
    }
    let title = format!("{}: memory over {}s", report.name(), finding.unit);
    Some(frame.finish(id, &title, &description(report)))
}

/// A dot for each point; where they would run into each other, a place that shows its value.
fn values(frame: &mut Frame, data: &Data, rss: &[(f64, f64)], unit: &str) {
    const MOST_DOTS: usize = 60;
    let class = if rss.len() <= MOST_DOTS {
        "mark"
    } else {
        "hit"
    };
    let live: BTreeMap<u64, f64> = data
        .x
        .iter()
        .zip(data.series.points())
        .map(|(x, point)| (x.to_bits(), point.sizes[Size::Live]))
        .collect();
    for (x, bytes) in rss {
        let live = live.get(&x.to_bits()).filter(|live| !live.is_nan());
        let live = live.map_or(String::new(), |live| format!(", live {}", size(*live)));
        let tip = format!("{unit} {x:.0}: RSS {}{live}", size(*bytes));
        let at = frame.place(*x, *bytes);
        frame.svg.dot(class, at, &tip);
    }
}

/// The slope that the verdict rests on, through the middle of the settled rounds.
fn trend(frame: &mut Frame, report: &ProcessReport, data: &Data) {
    let Some(slope) = report.growth() else { return };
    if report.finding.quantity != Quantity::Footprint {
        return;
    }
    let from = report.finding.trend.settled_x;
    let points = data
        .x
        .iter()
        .zip(data.series.points())
        .filter(|(x, _)| **x >= from);
    let lifted: Vec<f64> = points
        .map(|(x, p)| p.sizes.footprint() - slope.per_x * x)
        .collect();
    let level = median(&lifted);
    let at = |x: f64| frame.place(x, level + slope.per_x * x);
    let (start, end) = (at(from), at(frame.x.to));
    frame.svg.line("trend", start, end);
}

fn description(report: &ProcessReport) -> String {
    let slope = report.finding.trend.slope.per_x;
    format!(
        "RSS at {} ends at {}; peak {}; slope {} per {}. Verdict: {}.",
        report.finding.stage,
        size(report.last_rss),
        size(report.peak),
        change(slope),
        report.finding.unit,
        report.finding.verdict.name(),
    )
}

type Line = Vec<(f64, f64)>;

/// The lowest and the highest RSS of any stage in each round; empty for a single stage.
fn band(report: &ProcessReport) -> (Line, Line) {
    let mut rounds: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    let regular = report
        .process
        .stages
        .iter()
        .filter(|(_, series)| series.len() > 2);
    if regular.clone().count() < 2 {
        return (Vec::new(), Vec::new());
    }
    for (_, series) in regular {
        for (x, point) in series.axis().into_iter().zip(series.points()) {
            let (low, high) = rounds.entry(x as u64).or_insert((f64::INFINITY, 0.0));
            *low = low.min(point.sizes[Size::Rss]);
            *high = high.max(point.peak);
        }
    }
    let line = |of: fn(&(f64, f64)) -> f64| -> Line {
        let all: Line = rounds
            .iter()
            .map(|(x, ends)| (*x as f64, of(ends)))
            .collect();
        thinned(&all, MOST_POINTS)
    };
    (line(|ends| ends.0), line(|ends| ends.1))
}

/// From zero, unless everything happens far above it.
fn range(lines: &[&Line]) -> (f64, f64) {
    let all = || lines.iter().flat_map(|line| line.iter().map(|(_, y)| *y));
    let low = all().fold(f64::INFINITY, f64::min);
    let high = all().fold(1024.0 * 1024.0, f64::max);
    if low.is_finite() && low > 0.5 * high {
        (low, high)
    } else {
        (0.0, high)
    }
}

fn warm_up(frame: &mut Frame, report: &ProcessReport) {
    let trend = &report.finding.trend;
    if trend.warm_up == 0 || trend.settled_x <= frame.x.from {
        return;
    }
    let (left, top) = frame.place(frame.x.from, frame.y.to);
    let (right, bottom) = frame.place(trend.settled_x, frame.y.from);
    frame.svg.rect(
        "warm-up",
        (left, top),
        (right - left, bottom - top),
        "warm-up, left out",
    );
    if right - left > 58.0 {
        frame
            .svg
            .text("note", (left + 5.0, top + 15.0), "start", "warm-up");
    }
}
