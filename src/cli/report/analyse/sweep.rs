//! Sums of the memory of processes over time.

use super::ProcessReport;
use crate::report::model::{Point, Size, PEAK_STAGE};

/// A process without a marker `exit` counts for at least so long after its last marker.
const MIN_TAIL_SECONDS: f64 = 60.0;

/// A marker with a time.
pub struct Visit<'a> {
    pub point: &'a Point,
    /// Memory that the process shares with others since a fork, as far as the markers know the PSS.
    pub shared: f64,
    /// Times of the neighbouring markers; those of another process of a chain do not count.
    pub before: Option<f64>,
    pub after: Option<f64>,
}

/// The markers of a process in the order of time, and the seconds for which it counts after the last one.
pub fn visits(report: &ProcessReport) -> (Vec<Visit<'_>>, f64) {
    let process = &report.process;
    let stages = process.stages.iter();
    let own = stages.filter(|(name, _)| **name != *PEAK_STAGE);
    let points = own.flat_map(|(_, series)| series.points());
    let mut points: Vec<&Point> = points.filter(|point| point.t.is_finite()).collect();
    points.sort_by(|a, b| a.order.epoch.cmp(&b.order.epoch).then(a.t.total_cmp(&b.t)));
    let is_chain = process.processes > 1;
    let are_of_one = |a: &&Point, b: &&Point| !is_chain || a.order.epoch == b.order.epoch;
    let (mut visits, mut shared, mut pause) = (Vec::new(), 0.0, MIN_TAIL_SECONDS);
    for points in points.chunk_by(are_of_one) {
        for (place, point) in points.iter().enumerate() {
            let (rss, pss) = (point.sizes[Size::Rss], point.sizes[Size::Pss]);
            if !pss.is_nan() {
                shared = (rss - pss).max(0.0);
            }
            let before = place.checked_sub(1).map(|before| points[before].t);
            pause = before.map_or(pause, |before| pause.max(point.t - before));
            visits.push(Visit {
                point,
                shared,
                before,
                after: points.get(place + 1).map(|after| after.t),
            });
        }
    }
    let has_ended = is_chain || process.has_exited || report.is_killed();
    (visits, if has_ended { 0.0 } else { pause })
}

/// A process holds these bytes from `begin` to `end`, both included.
pub struct Span {
    /// The place of the process.
    pub member: usize,
    pub begin: f64,
    pub end: f64,
    pub bytes: f64,
}

/// The sum of all processes, and those of their groups: one sweep over the spans. `None` without a span. `size` chooses of
/// the spans of a process that meet at a marker, in the order of their begins.
pub fn sweep(
    spans: &[Span],
    group_of: &[usize],
    size: fn(&[f64]) -> Option<f64>,
) -> Option<(Curve, Vec<Curve>)> {
    // At one moment the spans that begin come before those that end, so that a last size counts.
    let ends = |span| [(span, false), (span, true)];
    let mut events: Vec<(&Span, bool)> = spans.iter().flat_map(ends).collect();
    let time = |(span, is_end): &(&Span, bool)| if *is_end { span.end } else { span.begin };
    events.sort_by(|a, b| time(a).total_cmp(&time(b)).then(a.1.cmp(&b.1)));
    let mut open: Vec<Vec<f64>> = vec![Vec::new(); group_of.len()];
    // The last curve is that of all.
    let groups = group_of.iter().max()? + 1;
    let mut curves = vec![Curve::default(); groups + 1];
    let mut changed = Vec::new();
    for (step, event) in events.iter().enumerate() {
        let (span, is_end) = *event;
        let open = &mut open[span.member];
        let old = size(open).unwrap_or(0.0);
        if !is_end {
            open.push(span.bytes);
        } else if let Some(place) = open.iter().position(|bytes| *bytes == span.bytes) {
            open.remove(place);
        }
        let new = size(open).unwrap_or(0.0);
        for place in [group_of[span.member], groups] {
            curves[place].now += new - old;
            changed.push(place);
        }
        let next = events.get(step + 1);
        if next.is_none_or(|next| next.1 || time(next) > time(event)) {
            for place in changed.drain(..) {
                let bytes = curves[place].now.max(0.0);
                curves[place].levels.push(Level {
                    step,
                    t: time(event),
                    bytes,
                });
            }
        }
    }
    let all = curves.pop().filter(|all| !all.levels.is_empty())?;
    Some((all, curves))
}

/// A sum over time.
#[derive(Clone, Default)]
pub struct Curve {
    now: f64,
    pub levels: Vec<Level>,
}

/// The sum from one step of the sweep on.
#[derive(Clone)]
pub struct Level {
    pub step: usize,
    pub t: f64,
    pub bytes: f64,
}

impl Curve {
    /// The first of the highest levels.
    pub fn peak(&self) -> Option<&Level> {
        let levels = self.levels.iter();
        levels.reduce(|a, b| if b.bytes > a.bytes { b } else { a })
    }

    /// The levels with the time until each holds.
    fn spans(&self, end: f64) -> impl Iterator<Item = (&Level, f64)> {
        let until = self.levels.iter().skip(1).map(|next| next.t).chain([end]);
        self.levels.iter().zip(until)
    }

    /// The mean while a process runs.
    pub fn mean(&self, end: f64) -> f64 {
        // Without a process a difference of rounding is left.
        let running = self.spans(end).filter(|(level, _)| level.bytes >= 1.0);
        let (area, seconds) = running.fold((0.0, 0.0), |(area, seconds), (level, until)| {
            let length = until - level.t;
            (area + level.bytes * length, seconds + length)
        });
        if seconds > 0.0 {
            area / seconds
        } else {
            self.peak().map_or(0.0, |level| level.bytes)
        }
    }

    /// The sum after a step.
    pub fn at(&self, step: usize) -> f64 {
        let count = self.levels.partition_point(|level| level.step <= step);
        self.levels[..count].last().map_or(0.0, |level| level.bytes)
    }

    /// The start of each part of the time, with the highest level in it. None if the time has no length.
    pub fn highest_of_parts(&self, parts: usize, end: f64) -> impl Iterator<Item = (f64, &Level)> {
        let start = self.levels[0].t;
        let width = (end - start) / parts as f64;
        let place = |t: f64| (((t - start) / width) as usize).min(parts - 1);
        let mut highest: Vec<Option<&Level>> = vec![None; parts];
        for (level, until) in self.spans(end).filter(|_| width > 0.0) {
            for part in &mut highest[place(level.t)..=place(until)] {
                *part = part
                    .filter(|before| before.bytes >= level.bytes)
                    .or(Some(level));
            }
        }
        let parts = highest.into_iter().enumerate();
        parts.filter_map(move |(part, level)| Some((start + part as f64 * width, level?)))
    }
}
