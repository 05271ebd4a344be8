//! Sums of the memory of processes over time.

use super::Finding;
use crate::report::model::{Point, Series, Size, PEAK_STAGE};

/// A process without a marker `exit` counts for at least so long after its last marker.
const MIN_TAIL_SECONDS: f64 = 60.0;

/// A marker with a time.
pub struct Visit<'a> {
    pub point: &'a Point,
    pub t: f64,
    /// Memory that the process shares with others since a fork, as far as the markers know the PSS.
    pub shared: f64,
}

impl Visit<'_> {
    /// RSS without shared memory.
    pub fn held(&self) -> f64 {
        (self.point.sizes.rss() - self.shared).max(0.0)
    }
}

/// A change of the memory of a process.
#[derive(Clone, Copy)]
pub struct Change {
    t: f64,
    /// After the moment. Processes that end at a moment count beside those that begin.
    is_after: bool,
    bytes: f64,
}

/// The changes of a process. `bytes` are those at the marker of a place, and those from then until the next marker.
/// Of markers with one time, the highest counts at the moment.
pub fn changes(finding: &Finding, bytes: impl Fn(&[Visit], usize) -> [f64; 2]) -> Vec<Change> {
    let visits = visits(finding);
    let is_chain = finding.process.processes > 1;
    let are_of_one = |a: &Visit, b: &Visit| !is_chain || a.point.order.epoch == b.point.order.epoch;
    let has_ended = is_chain || finding.process.has_exited || finding.is_killed();
    let mut changes = Vec::new();
    for visits in visits.chunk_by(are_of_one) {
        let (mut place, mut held, mut last, mut pause) = (0, 0.0, f64::NAN, MIN_TAIL_SECONDS);
        let mut change = |t, is_after, new| {
            let bytes = new - std::mem::replace(&mut held, new);
            changes.push(Change { t, is_after, bytes });
        };
        for at_once in visits.chunk_by(|a, b| a.t == b.t) {
            let sizes = (place..place + at_once.len()).map(|place| bytes(visits, place));
            let highest = sizes.reduce(|[a, _], [b, after]| [a.max(b), after]);
            let (t, [at, after]) = (at_once[0].t, highest.unwrap_or_default());
            change(t, false, at);
            change(t, true, after);
            pause = pause.max(t - last);
            (place, last) = (place + at_once.len(), t);
        }
        change(if has_ended { last } else { last + pause }, true, 0.0);
    }
    changes
}

/// The markers in the order of time, those of each process of a chain together.
fn visits<'a>(finding: &Finding<'a>) -> Vec<Visit<'a>> {
    let stages = finding.process.stages.iter();
    let own = stages.filter(|series| *series.stage != *PEAK_STAGE);
    let points = own.flat_map(Series::points);
    let mut points: Vec<(f64, &Point)> =
        points.filter_map(|point| Some((point.t?, point))).collect();
    let epoch = |(_, point): &(f64, &Point)| point.order.epoch;
    points.sort_by(|a, b| epoch(a).cmp(&epoch(b)).then(a.0.total_cmp(&b.0)));
    let mut shared = 0.0;
    let visits = points.into_iter().map(|(t, point)| {
        if let Some(pss) = point.sizes.get(Size::Pss) {
            shared = (point.sizes.rss() - pss).max(0.0);
        }
        Visit { point, t, shared }
    });
    visits.collect()
}

/// The changes of groups of processes, in the order of time.
pub struct Timeline {
    /// Each with the place of its group.
    changes: Vec<(usize, Change)>,
    groups: usize,
    pub start: f64,
    /// The last marker. A process without a marker `exit` counts until then.
    pub end: f64,
}

/// The highest sum, its first time, and the mean while a process runs.
#[derive(Clone, Copy)]
pub struct Sum {
    pub peak: f64,
    pub peak_time: f64,
    pub mean: f64,
}

impl Timeline {
    /// `None` without a marker that has a time. No process counts after `last`, unless a marker follows.
    pub fn of<'a>(
        groups: impl IntoIterator<Item = &'a Vec<Change>>,
        last: f64,
    ) -> Option<Timeline> {
        let (mut changes, mut count) = (Vec::new(), 0);
        for group in groups {
            changes.extend(group.iter().map(|change| (count, *change)));
            count += 1;
        }
        let markers = changes.iter().filter(|(_, change)| !change.is_after);
        let end = markers.fold(last, |end, (_, marker)| end.max(marker.t));
        for (_, change) in &mut changes {
            change.t = change.t.min(end);
        }
        changes.sort_by(|(_, a), (_, b)| a.t.total_cmp(&b.t).then(a.is_after.cmp(&b.is_after)));
        Some(Timeline {
            groups: count,
            start: changes.first()?.1.t,
            end,
            changes,
        })
    }

    /// Calls `see` for each moment: with its time and that of the next one, the sum of all, and that of each group.
    pub fn replay(&self, mut see: impl FnMut(f64, f64, f64, &[f64])) {
        let (mut all, mut sums) = (0.0, vec![0.0; self.groups]);
        let is_one = |(_, a): &(usize, Change), (_, b): &(usize, Change)| {
            (a.t, a.is_after) == (b.t, b.is_after)
        };
        let mut moments = self.changes.chunk_by(is_one).peekable();
        while let Some(moment) = moments.next() {
            for (group, change) in moment {
                all += change.bytes;
                sums[*group] += change.bytes;
            }
            let next = moments.peek().map_or(self.end, |next| next[0].1.t);
            see(moment[0].1.t, next, f64::max(all, 0.0), &sums);
        }
    }

    pub fn sum(&self) -> Sum {
        let (mut peak, mut peak_time) = (f64::NEG_INFINITY, f64::NAN);
        let (mut area, mut seconds) = (0.0, 0.0);
        self.replay(|t, next, bytes, _| {
            if bytes > peak {
                (peak, peak_time) = (bytes, t);
            }
            // Without a process a difference of rounding is left.
            if bytes >= 1.0 {
                area += bytes * (next - t);
                seconds += next - t;
            }
        });
        Sum {
            peak,
            peak_time,
            mean: if seconds > 0.0 { area / seconds } else { peak },
        }
    }
}
