//! The samples of one process at one stage: one point per round. A long series joins neighbouring
//! points, so its length stays bounded.

use std::fmt;
use std::mem::replace;

use flarena_shared::marker::Marker;
use flarena_shared::stages::Stage;

use super::order::Order;
use super::sizes::Sizes;

/// The samples of one round of one site, or of several neighbouring rounds in a long series.
#[derive(Clone, Debug)]
pub struct Point {
    pub order: Order,
    pub round: Option<i64>,
    /// The site's place in the list of the process; several sites may share a round.
    pub site: Option<u16>,
    pub t: Option<f64>,
    /// Seconds of a clock that is never set.
    pub mono: Option<f64>,
    /// Mean of the samples.
    pub sizes: Sizes,
    /// Highest RSS of the samples.
    pub peak: f64,
    /// Highest RSS since the marker before, as far as the library knows; at least `peak`.
    pub recent_peak: f64,
    /// Highest RSS of the process so far, by the kernel's count.
    pub highest: Option<f64>,
    /// Number of samples.
    pub count: u32,
    /// Number of visits: rounds of one site.
    visits: u32,
}

impl Point {
    pub fn of(marker: &Marker, order: Order, site: Option<u16>) -> Self {
        let bytes = |known: Option<u64>| known.map(|bytes| bytes as f64);
        let sizes = Sizes::of(marker);
        let rss = sizes.rss();
        Point {
            order,
            round: marker.round,
            site,
            t: marker.t,
            mono: marker.mono,
            sizes,
            peak: rss,
            recent_peak: bytes(marker.peak_bytes).unwrap_or(rss).max(rss),
            highest: bytes(marker.hwm_bytes),
            count: 1,
            visits: 1,
        }
    }

    fn merge(&mut self, other: &Point) {
        let counts = [self.count, other.count].map(f64::from);
        self.sizes.average_with(counts[0], &other.sizes, counts[1]);
        self.peak = self.peak.max(other.peak);
        self.recent_peak = self.recent_peak.max(other.recent_peak);
        if other.highest > self.highest {
            self.highest = other.highest;
        }
        self.count += other.count;
        if !self.is_same_visit(other) {
            self.visits += other.visits;
        }
        self.t = self.t.or(other.t);
    }

    fn is_same_round(&self, other: &Point) -> bool {
        self.round.is_some() && self.round == other.round
    }

    /// True for samples of the same visit: the round of one site.
    fn is_same_visit(&self, other: &Point) -> bool {
        self.is_same_round(other) && self.site == other.site
    }
}

/// The unit of the positions of points, and of a growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Round,
    Minute,
    /// The markers have neither rounds nor times.
    Marker,
}

impl Unit {
    pub fn name(self) -> &'static str {
        match self {
            Unit::Round => "round",
            Unit::Minute => "minute",
            Unit::Marker => "marker",
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Default)]
pub struct Series {
    pub stage: Box<str>,
    /// In the order of reading until `compact` sorts them. The last visit has a point of its own.
    points: Vec<Point>,
    /// A point joins `1 << doublings` visits. The number doubles whenever there are too many points.
    doublings: u32,
    /// The round of the sample that was added last.
    latest_round: Option<i64>,
    /// Rounds seen, or samples if they have no rounds.
    pub rounds: u64,
    /// RSS of the first and of the last sample.
    first: Option<(Order, f64)>,
    last: Option<(Order, f64)>,
}

impl Series {
    /// A series without points.
    pub fn of_stage(stage: &str) -> Self {
        Series {
            stage: stage.into(),
            ..Series::default()
        }
    }

    /// The samples of the stage `periodic` have no rounds.
    pub fn is_periodic(&self) -> bool {
        *self.stage == *Stage::Periodic.name()
    }

    pub fn len(&self) -> usize {
        self.points.len()
    }

    pub fn push(&mut self, mut point: Point) {
        if self.is_periodic() {
            point.round = None;
        }
        let end = (point.order, point.sizes.rss());
        self.first = self.first.filter(|first| first.0 <= end.0).or(Some(end));
        self.last = self.last.filter(|last| last.0 > end.0).or(Some(end));
        self.rounds += u64::from(point.round.is_none() || point.round != self.latest_round);
        self.latest_round = point.round;
        match self.points.last_mut() {
            Some(last) if last.is_same_visit(&point) => return last.merge(&point),
            Some(_) => {}
            // A trainer that is restarted each round has one point per stage. The default capacity of four would waste memory.
            None => self.points.reserve_exact(1),
        }
        self.points.push(point);
    }

    /// Sorts the points, joins the samples of one visit that came from several files, and joins neighbouring visits, but not
    /// the last one, until at most `max_points` are left.
    pub fn compact(&mut self, max_points: usize) {
        self.points.sort_by_key(|point| point.order);
        self.join(|earlier, later| later.is_same_visit(earlier));
        let last = self.points.pop();
        loop {
            let most = 1 << self.doublings;
            self.join(|earlier, later| earlier.visits + later.visits <= most);
            if self.points.len() < max_points.max(2) {
                break;
            }
            self.doublings += 1;
        }
        self.points.extend(last);
        self.points.shrink_to_fit();
    }

    fn join(&mut self, is_one: impl Fn(&Point, &Point) -> bool) {
        self.points.dedup_by(|later, earlier| {
            let is_one = is_one(earlier, later);
            if is_one {
                earlier.merge(later);
            }
            is_one
        });
    }

    /// Sorts the points, and gives each one without a round the round that the process was in. Points that would all get the
    /// same one stay without.
    pub fn finish(&mut self, round_at: impl Fn(Order) -> Option<i64>) {
        self.compact(usize::MAX);
        let points = self.points.iter();
        let rounds = points.map(|point| point.round.or_else(|| round_at(point.order)));
        let rounds: Vec<Option<i64>> = rounds.collect();
        let is_in_one_round = rounds.len() > 1 && rounds.iter().all(|round| *round == rounds[0]);
        if !self.is_periodic() && !is_in_one_round {
            let points = self.points.iter_mut().zip(rounds);
            points.for_each(|(point, round)| point.round = round);
        }
        // A long series counts its rounds when it is read.
        if self.doublings == 0 {
            self.rounds = self.points.chunk_by(Point::is_same_round).count() as u64;
        }
    }

    /// Adds the points of a later process, whose place in its chain orders them. Points without a round get this one.
    pub fn append(&mut self, later: Series, place: u64, round: Option<i64>) {
        self.first = self.first.or(later.first);
        self.last = later.last.or(self.last);
        self.rounds += later.rounds;
        for mut point in later.points {
            point.order.epoch = place;
            point.round = point.round.or(round);
            self.points.push(point);
        }
    }

    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The points after a warm-up of so many; at least the last one.
    pub fn settled(&self, warm_up: usize) -> &[Point] {
        let last = self.points.len().saturating_sub(1);
        &self.points[warm_up.min(last)..]
    }

    pub fn first_rss(&self) -> f64 {
        self.first.map_or(0.0, |(_, rss)| rss)
    }

    pub fn last_rss(&self) -> f64 {
        self.last.map_or(0.0, |(_, rss)| rss)
    }

    pub fn peak_rss(&self) -> f64 {
        self.points.iter().map(|p| p.peak).fold(0.0, f64::max)
    }

    /// The unit of the positions.
    pub fn unit(&self) -> Unit {
        let all = |is_known: fn(&Point) -> bool| self.points.iter().all(is_known);
        match self.is_periodic() {
            true if all(|point| point.t.is_some()) => Unit::Minute,
            false if all(|point| point.round.is_some()) => Unit::Round,
            true | false => Unit::Marker,
        }
    }

    /// The position of each point on the axis, strictly ascending: its round, the minutes since the first point, or the number
    /// of markers before it.
    pub fn positions(&self) -> Vec<f64> {
        let mut last = f64::NEG_INFINITY;
        match self.unit() {
            Unit::Minute => {
                let first = self.points.first().and_then(|point| point.t);
                let place = |point: &Point| {
                    let seconds = point.t.zip(first).map_or(0.0, |(t, first)| t - first);
                    // If the clock went back, a point is placed just after the one before it.
                    last = f64::max(seconds / 60.0, last + 1e-3);
                    last
                };
                self.points.iter().map(place).collect()
            }
            Unit::Marker => {
                let counts = self.points.iter().map(|point| f64::from(point.count));
                let before = counts.scan(0.0, |sum, count| Some(replace(sum, *sum + count)));
                before.collect()
            }
            Unit::Round => {
                let mut offset = 0.0;
                let place = |round: &[Point]| {
                    let first = round[0].round.unwrap_or(0) as f64;
                    // The rounds of a second job of the process continue after those of the first.
                    if first + offset <= last {
                        offset = last + 1.0 - first;
                    }
                    last = first + offset;
                    // The points of one round, such as those of several sites, divide it evenly.
                    let (begin, length) = (last, round.len());
                    (0..length).map(move |i| begin + i as f64 / length as f64)
                };
                let rounds = self.points.chunk_by(Point::is_same_round);
                rounds.flat_map(place).collect()
            }
        }
    }

    /// The points with their positions.
    pub fn positioned(&self) -> impl Iterator<Item = (f64, &Point)> {
        self.positions().into_iter().zip(&self.points)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(seq: u64, round: f64, rss: f64) -> Point {
        let marker = Marker {
            t: Some(seq as f64),
            rss_bytes: Some(rss as u64),
            hwm_bytes: Some(rss as u64),
            ..Marker::default()
        };
        Point {
            round: Some(round as i64),
            ..Point::of(&marker, Order { epoch: 0, seq }, None)
        }
    }

    /// Points in the order of writing: sequence number, round, RSS.
    fn series(points: impl IntoIterator<Item = (u64, f64, f64)>) -> Series {
        let mut series = Series::default();
        for (seq, round, rss) in points {
            series.push(point(seq, round, rss));
        }
        series.finish(|_| None);
        series
    }

    #[test]
    fn samples_of_one_round_become_one_point_with_their_mean() {
        let series = series([(0, 1.0, 10.0), (1, 1.0, 30.0), (2, 2.0, 50.0)]);
        assert_eq!((series.rounds, series.len()), (2, 2));
        assert_eq!(series.points()[0].sizes.rss(), 20.0);
        assert_eq!(series.points()[0].peak, 30.0);
        assert_eq!((series.first_rss(), series.peak_rss()), (10.0, 50.0));
    }

    #[test]
    fn points_are_sorted_by_sequence_number() {
        let series = series([(2, 2.0, 30.0), (1, 1.0, 20.0), (0, 0.0, 10.0)]);
        let rounds: Vec<Option<i64>> = series.points().iter().map(|p| p.round).collect();
        assert_eq!(rounds, [Some(0), Some(1), Some(2)]);
        assert_eq!((series.first_rss(), series.last_rss()), (10.0, 30.0));
    }

    #[test]
    fn rounds_of_a_second_job_continue_after_the_first() {
        let rounds = (0..).zip([0.0, 1.0, 2.0, 0.0, 1.0]);
        let series = series(rounds.map(|(seq, round)| (seq, round, 1.0)));
        assert_eq!(series.positions(), [0.0, 1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn the_sites_of_a_round_are_points_within_it() {
        let mut series = Series::default();
        for seq in 0..6 {
            let site = Some((seq % 3) as u16);
            let round = (seq / 3) as f64;
            series.push(Point {
                site,
                ..point(seq, round, 1.0)
            });
        }
        series.finish(|_| None);
        assert_eq!((series.rounds, series.len()), (2, 6));
        let thirds = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0].map(|third| third / 3.0);
        let positions = series.positions();
        assert!(positions
            .iter()
            .zip(thirds)
            .all(|(a, b)| (a - b).abs() < 1e-9));
    }

    #[test]
    fn points_of_a_compacted_series_have_equally_many_rounds() {
        let mut series = Series::default();
        for i in 0..1000u64 {
            series.push(point(i, i as f64, i as f64));
            if series.len() > 65 {
                series.compact(65);
            }
        }
        let counts: Vec<u32> = series.points().iter().map(|point| point.count).collect();
        let whole = &counts[..counts.len() - 2];
        assert!(whole.iter().all(|count| *count == whole[0]), "{counts:?}");
    }

    #[test]
    fn the_later_part_of_a_long_series_may_be_read_first() {
        let mut series = Series::default();
        for i in (6000..10_000u64).chain(0..6000) {
            series.push(point(2 * i, i as f64, i as f64));
            series.push(point(2 * i + 1, i as f64, i as f64));
            if series.len() > 64 {
                series.compact(64);
            }
        }
        series.finish(|_| None);
        assert_eq!(series.rounds, 10_000);
        let last = series.points().last().unwrap();
        assert_eq!((last.round, last.count), (Some(9999), 2));
    }

    #[test]
    fn a_long_series_keeps_its_shape_in_few_points() {
        let mut series = Series::default();
        for i in 0..100_000u64 {
            series.push(point(i, i as f64, i as f64));
            if series.len() > 64 {
                series.compact(64);
            }
        }
        series.finish(|_| None);
        assert!((30..=64).contains(&series.len()), "{}", series.len());
        assert_eq!(series.rounds, 100_000);
        assert_eq!((series.first_rss(), series.peak_rss()), (0.0, 99_999.0));
        let (position, last) = series.positioned().last().unwrap();
        assert_eq!(
            (position, last.round, last.peak),
            (99_999.0, Some(99_999), 99_999.0)
        );
        let middle = &series.points()[series.len() / 2];
        let off = (middle.sizes.rss() - middle.round.unwrap() as f64).abs();
        assert!(off <= 4096.0, "{off}");
    }
}
