//! Memory over the rounds, at the stage that decided the verdict.

use maud::{html, Markup};

use super::frame::{px, Frame};
use super::scale::count_ticks;
use super::{area, figure, on_both, polyline, thinned, Key, Points};
use crate::report::analyse::stats::median;
use crate::report::analyse::{ProcessReport, Quantity};
use crate::report::explain::live_suffix;
use crate::report::model::{Point, Size, Sizes};
use crate::report::units::{signed_size, size, MB};

const MAX_POINTS: usize = 240;
/// On a page and on a phone.
const WIDE: (f64, f64) = (530.0, 240.0);
const NARROW: (f64, f64) = (330.0, 230.0);

pub fn chart(report: &ProcessReport) -> Option<Markup> {
    let series = report.series().filter(|series| series.len() > 1)?;
    let points: Vec<(f64, &Point)> = series.positioned().collect();
    let curves = Curves::of(&points);
    let ends = (points.first()?.0, points.last()?.0);
    let unit = report.finding.unit.name();
    let label = format!(
        "{}: memory over {unit}s. {}",
        report.full_name(),
        description(report)
    );
    let sized = |(width, height)| {
        let frame = Frame::new(
            (width, height),
            ends,
            curves.y_range(),
            report.process.cgroup_limit,
        );
        let body = html! {
            (warm_up_band(&frame, report))
            (curves.draw(&frame))
            (tooltips(&frame, &points, &curves.rss, unit))
            (trend_line(&frame, report, &points))
        };
        let ticks = count_ticks(frame.x.from, frame.x.to, width / 60.0);
        frame.finish(&label, &ticks, unit, &body)
    };
    let charts = on_both(WIDE, NARROW, sized);
    let (title, note) = (
        format!("Over {unit}s"),
        format!("at {}", report.finding.stage),
    );
    Some(figure(
        &title,
        &note,
        &charts,
        &curves.keys(report.growth().is_some()),
    ))
}

/// The curves of the chart. One without known values is empty.
struct Curves {
    rss: Points,
    live: Points,
    /// Live, cached and retained memory together.
    held: Points,
    swap: Points,
    file: Points,
}

impl Curves {
    fn of(points: &[(f64, &Point)]) -> Curves {
        let curve = |value: &dyn Fn(&Sizes) -> f64| -> Points {
            let values = points.iter().map(|(x, point)| (*x, value(&point.sizes)));
            let known = values.filter(|(_, y)| !y.is_nan());
            thinned(&known.collect::<Points>(), MAX_POINTS)
        };
        Curves {
            rss: curve(&|s| s[Size::Rss]),
            live: curve(&|s| s[Size::Live]),
            held: curve(&|s| s[Size::Live] + s.kept_free()),
            swap: curve(&|s| s[Size::Swap]),
            file: curve(&Sizes::file_backed),
        }
    }

    fn has_swap(&self) -> bool {
        self.swap.iter().any(|(_, y)| *y > 0.0)
    }

    /// File-backed memory is drawn if it rises visibly above the lower edge.
    fn has_file(&self) -> bool {
        let (low, high) = self.y_range();
        self.file
            .iter()
            .any(|(_, bytes)| *bytes > low + 0.05 * (high - low))
    }

    /// Starts at zero if an area is filled, because its height shows its size. Lines alone may start
    /// far above zero.
    fn y_range(&self) -> (f64, f64) {
        let values = || self.rss.iter().chain(&self.live).map(|(_, y)| *y);
        let low = values().fold(f64::INFINITY, f64::min);
        let high = values().fold(MB, f64::max);
        let is_filled = !self.held.is_empty();
        let is_far_above_zero = low.is_finite() && low > 0.5 * high;
        match is_far_above_zero && !is_filled && !self.has_swap() {
            true => (low, high),
            false => (0.0, high),
        }
    }

    fn draw(&self, frame: &Frame) -> Markup {
        html! {
            path.fill-held d=(area(&frame.steps(&self.held), &frame.steps(&self.live))) {}
            @for (class, curve, is_shown) in [
                ("swap", &self.swap, self.has_swap()),
                ("file", &self.file, self.has_file()),
                ("live", &self.live, true),
                ("rss", &self.rss, true),
            ] {
                @if is_shown { path class=(class) d=(polyline(frame.steps(curve))) {} }
            }
        }
    }

    fn keys(&self, has_trend: bool) -> Vec<Key> {
        let all = [
            ("rss", "RSS", true),
            ("live", "live", !self.live.is_empty()),
            ("fill-held", "cached + retained", !self.held.is_empty()),
            ("file", "file", self.has_file()),
            ("trend", "trend", has_trend),
            ("swap", "swap", self.has_swap()),
        ];
        let shown = all.into_iter().filter(|(.., is_shown)| *is_shown);
        shown
            .map(|(class, name, _)| (class, name.to_owned()))
            .collect()
    }
}

/// A dot with a tooltip for each point. Crowded dots are invisible and only have a tooltip.
fn tooltips(frame: &Frame, points: &[(f64, &Point)], rss: &Points, unit: &str) -> Markup {
    const MAX_DOTS: usize = 60;
    let class = if rss.len() > MAX_DOTS { "hit" } else { "dot" };
    let live = |x: f64| {
        let point = points.iter().find(|(at, _)| *at == x);
        point.map_or(f64::NAN, |(_, point)| point.sizes[Size::Live])
    };
    html! {
        @for (x, bytes) in rss {
            @let (cx, cy) = frame.place(*x, *bytes);
            circle class=(class) cx=(px(cx)) cy=(px(cy)) r="2.6" {
                title { (unit) " " (format!("{x:.0}")) ": RSS " (size(*bytes)) (live_suffix(live(*x))) }
            }
        }
    }
}

/// The slope that the verdict rests on, through the median of the settled rounds.
fn trend_line(frame: &Frame, report: &ProcessReport, points: &[(f64, &Point)]) -> Markup {
    let is_drawn = matches!(
        report.finding.quantity,
        Quantity::Footprint | Quantity::WithoutCached
    );
    let Some(slope) = report.growth().filter(|_| is_drawn) else {
        return Markup::default();
    };
    let from = report.finding.trend.settled_from;
    let settled = points.iter().filter(|(x, _)| *x >= from);
    let offsets = settled.map(|(x, p)| p.sizes.footprint() - slope.per_x * x);
    let offset = median(&offsets.collect::<Vec<_>>());
    let ends = [from, frame.x.to].map(|x| frame.place(x, offset + slope.per_x * x));
    html! { path.trend d=(polyline(ends)) {} }
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

fn warm_up_band(frame: &Frame, report: &ProcessReport) -> Markup {
    let trend = &report.finding.trend;
    if trend.warm_up == 0 || trend.settled_from <= frame.x.from {
        return Markup::default();
    }
    let (left, top) = frame.place(frame.x.from, frame.y.to);
    let (right, bottom) = frame.place(trend.settled_from, frame.y.from);
    html! {
        rect.warm-up x=(px(left)) y=(px(top)) width=(px(right - left)) height=(px(bottom - top)) {
            title { "warm-up, left out" }
        }
        @if right - left > 58.0 { text x=(px(left + 5.0)) y=(px(top + 15.0)) { "warm-up" } }
    }
}
