//! Memory over the rounds, at the stage that the verdict rests on.

use std::collections::BTreeMap;

use super::frame::{thinned, Frame};
use super::scale::counts;
use super::svg::{area, polyline};
use crate::report::analyse::finding::Quantity;
use crate::report::analyse::stats::median;
use crate::report::analyse::ProcessReport;
use crate::report::explain::phrases::and_live;
use crate::report::model::{Point, Series, Size, Sizes};
use crate::report::units::{change, size, MB};

const MOST_POINTS: usize = 240;

type Line = Vec<(f64, f64)>;

pub fn chart(report: &ProcessReport, id: &str) -> Option<String> {
    let finding = &report.finding;
    let series = report.series().filter(|series| series.len() > 1)?;
    let points: Vec<(f64, &Point)> = series.on_axis().collect();
    let line = |of: &dyn Fn(&Sizes) -> f64| -> Line {
        let values = points.iter().map(|(x, point)| (*x, of(&point.sizes)));
        let known = values.filter(|(_, y)| !y.is_nan());
        thinned(&known.collect::<Line>(), MOST_POINTS)
    };
    let (rss, live) = (line(&|s| s[Size::Rss]), line(&|s| s[Size::Live]));
    let held = line(&|s| s[Size::Live] + s.held_back());
    let (swap, file) = (line(&|s| s[Size::Swap]), line(&Sizes::file_backed));
    let (lowest, highest) = band(report);
    let swaps = swap.iter().any(|(_, y)| *y > 0.0);
    let (low, high) = range(&[&rss, &live, &lowest, &highest]);
    let low = if swaps { 0.0 } else { low };
    let ends = (points.first()?.0, points.last()?.0);
    let mut frame = Frame::new(ends, (low, high), report.process.limit, 0.0);
    frame.axes(&counts(frame.x.from, frame.x.to, 10.0), finding.unit);
    warm_up(&mut frame, report);
    let range = area(&frame.steps(&highest), &frame.steps(&lowest));
    frame.svg.path("fill-range", &range);
    let held_area = area(&frame.steps(&held), &frame.steps(&live));
    frame.svg.path("fill-held", &held_area);
    let least_shown = frame.y.from + 0.05 * (frame.y.to - frame.y.from);
    let draws_file = file.iter().any(|(_, bytes)| *bytes > least_shown);
    for (class, line, is_drawn) in [
        ("swap", &swap, swaps),
        ("file", &file, draws_file),
        ("live", &live, true),
        ("rss", &rss, true),
    ] {
        if is_drawn {
            let path = polyline(frame.steps(line));
            frame.svg.path(class, &path);
        }
    }
    values(&mut frame, &points, &rss, finding.unit);
    trend(&mut frame, report, &points);
    frame.limit_line();
    let (over, at) = (format!("Over {}s", finding.unit), &finding.stage);
    frame.title(&over, &format!("at {at}"));
    for (class, name, is_drawn) in [
        ("rss", "RSS", true),
        ("live", "live", !live.is_empty()),
        ("fill-held", "cached + retained", !held.is_empty()),
        ("file", "file", draws_file),
        ("trend", "trend", report.growth().is_some()),
        ("swap", "swap", swaps),
        ("fill-range", "all stages", !highest.is_empty()),
    ] {
        if is_drawn {
            frame.legend(class, name);
        }
    }
    let title = format!("{}: memory over {}s", report.name(), finding.unit);
    Some(frame.finish(id, &title, &description(report)))
}

/// A dot for each point; where they would run into each other, a place that shows its value.
fn values(frame: &mut Frame, points: &[(f64, &Point)], rss: &Line, unit: &str) {
    const MOST_DOTS: usize = 60;
    let is_crowded = rss.len() > MOST_DOTS;
    let class = if is_crowded { "hit" } else { "mark" };
    for (x, bytes) in rss {
        let point = points.iter().find(|(at, _)| at == x);
        let live = point.map_or(f64::NAN, |(_, point)| point.sizes[Size::Live]);
        let tip = format!("{unit} {x:.0}: RSS {}{}", size(*bytes), and_live(live));
        let at = frame.place(*x, *bytes);
        frame.svg.dot(class, at, &tip);
    }
}

/// The slope that the verdict rests on, through the middle of the settled rounds.
fn trend(frame: &mut Frame, report: &ProcessReport, points: &[(f64, &Point)]) {
    let Some(slope) = report.growth() else { return };
    if report.finding.quantity != Quantity::Footprint {
        return;
    }
    let from = report.finding.trend.settled_x;
    let settled = points.iter().filter(|(x, _)| *x >= from);
    let lifted = settled.map(|(x, p)| p.sizes.footprint() - slope.per_x * x);
    let level = median(&lifted.collect::<Vec<_>>());
    let at = |x: f64| frame.place(x, level + slope.per_x * x);
    let (start, end) = (at(from), at(frame.x.to));
    frame.svg.line("trend", start, end);
}

fn description(report: &ProcessReport) -> String {
    let finding = &report.finding;
    format!(
        "RSS at {} ends at {}; peak {}; slope {} per {}. Verdict: {}.",
        finding.stage,
        size(report.last_rss),
        size(report.process.hwm),
        change(finding.trend.slope.per_x),
        finding.unit,
        finding.verdict.name(),
    )
}

/// The lowest and the highest RSS of any stage in each round; empty for a single stage.
fn band(report: &ProcessReport) -> (Line, Line) {
    let mut rounds: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    let stages = report.process.stages.iter().map(|(_, series)| series);
    let regular: Vec<&Series> = stages.filter(|series| series.len() > 2).collect();
    if regular.len() < 2 {
        return (Vec::new(), Vec::new());
    }
    for series in regular {
        for (x, point) in series.on_axis() {
            let (low, high) = rounds.entry(x as u64).or_insert((f64::INFINITY, 0.0));
            *low = low.min(point.sizes[Size::Rss]);
            *high = high.max(point.peak);
        }
    }
    let line = |of: fn(&(f64, f64)) -> f64| -> Line {
        let all = rounds.iter().map(|(x, ends)| (*x as f64, of(ends)));
        thinned(&all.collect::<Line>(), MOST_POINTS)
    };
    (line(|ends| ends.0), line(|ends| ends.1))
}

/// From zero, unless everything happens far above it.
fn range(lines: &[&Line]) -> (f64, f64) {
    let all = || lines.iter().flat_map(|line| line.iter().map(|(_, y)| *y));
    let low = all().fold(f64::INFINITY, f64::min);
    let high = all().fold(MB, f64::max);
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
    let band = (right - left, bottom - top);
    frame
        .svg
        .rect("warm-up", (left, top), band, "warm-up, left out");
    if right - left > 58.0 {
        let corner = (left + 5.0, top + 15.0);
        frame.svg.text("note", corner, "start", "warm-up");
    }
}
