//! The samples of one process at one stage: one point per round. A long series joins neighbouring
//! points, so its length stays bounded.

use std::fmt;

use super::order::Order;
use super::sample::{Sample, Size, Sizes};

/// The samples of one round of one site, or of several neighbouring rounds in a long series.
#[derive(Clone, Debug)]
pub struct Point {
    pub order: Order,
    /// NaN if the marker has no round.
    pub round: f64,
    /// The site's place in the list of the process; several sites may share a round.
    pub site: Option<u16>,
    pub t: f64,
    /// Mean of the samples.
    pub sizes: Sizes,
    /// Highest RSS of the samples.
    pub peak: f64,
    /// Highest RSS of the process so far, by the kernel's count; NaN if unknown.
    pub highest: f64,
    /// Highest RSS since the marker before, as far as the library knows; NaN if unknown.
    pub recent_peak: f64,
    /// Seconds of a clock that is never set; NaN if unknown.
    pub mono: f64,
    /// Number of samples.
    pub count: f64,
}

impl Point {
    pub fn of(sample: &Sample, order: Order, site: Option<u16>) -> Self {
        let or_nan = |number: Option<f64>| number.unwrap_or(f64::NAN);
        Point {
            order,
            round: or_nan(sample.round.map(|round| round as f64)),
            site,
            t: or_nan(sample.t),
            sizes: sample.sizes,
            peak: sample.sizes[Size::Rss],
            highest: or_nan(sample.peak_rss),
            recent_peak: or_nan(sample.recent_peak_rss),
            mono: or_nan(sample.mono),
            count: 1.0,
        }
    }

    fn merge(&mut self, other: &Point) {
        self.sizes
            .average_with(self.count, &other.sizes, other.count);
        self.peak = self.peak.max(other.peak);
        self.highest = self.highest.max(other.highest);
        self.recent_peak = self.recent_peak.max(other.recent_peak);
        self.count += other.count;
        if self.t.is_nan() {
            self.t = other.t;
        }
    }

    pub fn known_round(&self) -> Option<i64> {
        self.round.is_finite().then_some(self.round as i64)
    }

    /// True for samples of the same visit: the round of one site.
    fn is_same_visit(&self, other: &Point) -> bool {
        self.round == other.round && self.site == other.site
    }
}

/// The quantity on the axis of a series.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    Rounds,
    /// Markers without rounds, at irregular times.
    Minutes,
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

pub struct Series {
    axis: Axis,
    /// The last visit has a point of its own.
    points: Vec<Point>,
    /// Visits in each point before the last one. It doubles whenever there are too many points.
    visits_per_point: u64,
    /// Visits so far in the point before the last one.
    joined_visits: u64,
    /// The round and site of the sample that was added last.
    latest_visit: Option<(f64, Option<u16>)>,
    /// Rounds seen, or samples if they have no rounds.
    pub rounds: u64,
    /// RSS of the first and of the last sample.
    first: Option<(Order, f64)>,
    last: Option<(Order, f64)>,
}

impl Series {
    pub fn new(axis: Axis) -> Self {
        Series {
            axis,
            points: Vec::new(),
            visits_per_point: 1,
            joined_visits: 0,
            latest_visit: None,
            rounds: 0,
            first: None,
            last: None,
        }
    }

    pub fn len(&self) -> usize {
        self.points.len()
    }

    pub fn push(&mut self, mut point: Point) {
        if self.axis == Axis::Minutes {
            point.round = f64::NAN;
        }
        let end = Some((point.order, point.sizes[Size::Rss]));
        if self.first.is_none_or(|(order, _)| point.order < order) {
            self.first = end;
        }
        if self.last.is_none_or(|(order, _)| point.order >= order) {
            self.last = end;
        }
        let visit = (point.round, point.site);
        let visit_before = self.latest_visit.replace(visit);
        if visit_before.is_none_or(|(round, _)| round != point.round) {
            self.rounds += 1;
        }
        let Some(last) = self.points.last_mut() else {
            // A trainer that is restarted each round has one point per stage. The default capacity
            // of four would waste memory.
            self.points.reserve_exact(1);
            self.points.push(point);
            return;
        };
        if last.is_same_visit(&point) {
            last.merge(&point);
            return;
        }
        // The files of a process may be read in any order.
        let is_earlier = point.order < last.order;
        let is_joined = is_earlier && visit_before == Some(visit);
        let earlier = match is_earlier {
            true => point,
            false => std::mem::replace(last, point),
        };
        let place = self.points.len() - 1;
        let is_full = self.joined_visits >= self.visits_per_point;
        match self.points[..place].last_mut() {
            Some(joined) if joined.order < earlier.order && (is_joined || !is_full) => {
                joined.merge(&earlier);
                self.joined_visits += u64::from(!is_joined);
            }
            _ => {
                self.points.insert(place, earlier);
                self.joined_visits = 1;
            }
        }
    }

    /// Joins neighbouring points, but not the last one, until at most `max_points` are left.
    pub fn compact(&mut self, max_points: usize) {
        self.sort();
        while self.points.len() > max_points.max(2) {
            let last = self.points.pop();
            if self.points.len().is_multiple_of(2) {
                self.joined_visits += self.visits_per_point;
            }
            let pairs = self.points.chunks(2).map(|pair| {
                let mut point = pair[0].clone();
                pair[1..].iter().for_each(|other| point.merge(other));
                point
            });
            self.points = pairs.chain(last).collect();
            self.visits_per_point *= 2;
        }
        self.points.shrink_to_fit();
    }

    fn sort(&mut self) {
        self.points.sort_by_key(|point| point.order);
    }

    /// Sorts the points and joins the samples of one visit that came from several files.
    pub fn finish(&mut self) {
        self.sort();
        self.points.dedup_by(|later, earlier| {
            let same = later.is_same_visit(earlier);
            if same {
                earlier.merge(later);
            }
            same
        });
        self.count_rounds();
    }

    /// A long series counts its rounds when it is read.
    fn count_rounds(&mut self) {
        if self.visits_per_point == 1 {
            let rounds = self.points.chunk_by(|a, b| a.round == b.round);
            self.rounds = rounds.count() as u64;
        }
    }

    /// Gives each point without a round the round that the process was in. Points that would all get
    /// the same one stay without.
    pub fn fill_rounds(&mut self, round_at: impl Fn(Order) -> Option<f64>) {
        let mut rounds = self.points.iter().map(|point| match point.round.is_nan() {
            true => round_at(point.order),
            false => Some(point.round),
        });
        let first = rounds.next();
        let is_in_one_round = self.points.len() > 1 && rounds.all(|round| Some(round) == first);
        if self.axis == Axis::Minutes || is_in_one_round {
            return;
        }
        let points = self.points.iter_mut();
        for point in points.filter(|point| point.round.is_nan()) {
            point.round = round_at(point.order).unwrap_or(f64::NAN);
        }
        self.count_rounds();
    }

    /// Adds the points of a later process.
    pub fn append(&mut self, later: Series) {
        self.first = self.first.or(later.first);
        self.last = later.last.or(self.last);
        self.rounds += later.rounds;
        self.points.extend(later.points);
    }

    /// Numbers the process of these points, so that they follow those of earlier processes. Points
    /// without a round get this one.
    pub fn place_in_chain(&mut self, place: u64, round: f64) {
        for point in &mut self.points {
            point.order.epoch = place;
            if point.round.is_nan() {
                point.round = round;
            }
        }
    }

    pub fn points(&self) -> &[Point] {
        &self.points
    }

    pub fn first_rss(&self) -> f64 {
        self.first.map_or(f64::NAN, |(_, rss)| rss)
    }

    pub fn last_rss(&self) -> f64 {
        self.last.map_or(f64::NAN, |(_, rss)| rss)
    }

    pub fn peak_rss(&self) -> f64 {
        self.points.iter().map(|p| p.peak).fold(f64::NAN, f64::max)
    }

    fn has_minutes(&self) -> bool {
        self.axis == Axis::Minutes && self.points.iter().all(|p| !p.t.is_nan())
    }

    /// The unit of the positions.
    pub fn unit(&self) -> Unit {
        match () {
            () if self.has_minutes() => Unit::Minute,
            () if self.has_rounds() => Unit::Round,
            () => Unit::Marker,
        }
    }

    fn has_rounds(&self) -> bool {
        self.points.iter().all(|p| !p.round.is_nan())
    }

    /// The position of each point on the axis, strictly ascending. The points of one round, such as
    /// those of several sites, divide it evenly. If a process serves several jobs, the rounds of a
    /// job continue after those of the job before. Points without a round are placed by
    /// the markers before them.
    pub fn positions(&self) -> Vec<f64> {
        if self.has_minutes() {
            return self.minutes();
        }
        if !self.has_rounds() {
            let mut markers = 0.0;
            let place = |point: &Point| {
                markers += point.count;
                markers - point.count
            };
            return self.points.iter().map(place).collect();
        }
        let mut positions = Vec::with_capacity(self.points.len());
        let (mut offset, mut last) = (0.0, f64::NEG_INFINITY);
        for round in self.points.chunk_by(|a, b| a.round == b.round) {
            let first = round[0].round;
            if first + offset <= last {
                offset = last + 1.0 - first;
            }
            last = first + offset;
            let place = |i: usize| last + i as f64 / round.len() as f64;
            positions.extend((0..round.len()).map(place));
        }
        positions
    }

    /// The points with their positions.
    pub fn positioned(&self) -> impl Iterator<Item = (f64, &Point)> {
        self.positions().into_iter().zip(&self.points)
    }

    /// Minutes since the first point. If the clock went back, a point is placed just after the one
    /// before it.
    fn minutes(&self) -> Vec<f64> {
        let first = self.points.first().map_or(0.0, |point| point.t);
        let mut last = f64::NEG_INFINITY;
        let place = |point: &Point| {
            last = f64::max((point.t - first) / 60.0, last + 1e-3);
            last
        };
        self.points.iter().map(place).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(seq: u64, round: f64, rss: f64) -> Point {
        let mut sample = Sample {
            t: Some(seq as f64),
            peak_rss: Some(rss),
            ..Sample::default()
        };
        sample.sizes[Size::Rss] = rss;
        Point {
            round,
            ..Point::of(&sample, Order { epoch: 0, seq }, None)
        }
    }

    /// Points in the order of writing: sequence number, round, RSS.
    fn series(points: impl IntoIterator<Item = (u64, f64, f64)>) -> Series {
        let mut series = Series::new(Axis::Rounds);
        for (seq, round, rss) in points {
            series.push(point(seq, round, rss));
        }
        series.finish();
        series
    }

    #[test]
    fn samples_of_one_round_become_one_point_with_their_mean() {
        let series = series([(0, 1.0, 10.0), (1, 1.0, 30.0), (2, 2.0, 50.0)]);
        assert_eq!((series.rounds, series.len()), (2, 2));
        assert_eq!(series.points()[0].sizes[Size::Rss], 20.0);
        assert_eq!(series.points()[0].peak, 30.0);
        assert_eq!((series.first_rss(), series.peak_rss()), (10.0, 50.0));
    }

    #[test]
    fn points_are_sorted_by_sequence_number() {
        let series = series([(2, 2.0, 30.0), (1, 1.0, 20.0), (0, 0.0, 10.0)]);
        let rounds: Vec<f64> = series.points().iter().map(|p| p.round).collect();
        assert_eq!(rounds, [0.0, 1.0, 2.0]);
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
        let mut series = Series::new(Axis::Rounds);
        for seq in 0..6 {
            let site = Some((seq % 3) as u16);
            let round = (seq / 3) as f64;
            series.push(Point {
                site,
                ..point(seq, round, 1.0)
            });
        }
        series.finish();
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
        let mut series = Series::new(Axis::Rounds);
        for i in 0..1000u64 {
            series.push(point(i, i as f64, i as f64));
            if series.len() > 65 {
                series.compact(65);
            }
        }
        let counts: Vec<f64> = series.points().iter().map(|point| point.count).collect();
        let whole = &counts[..counts.len() - 2];
        assert!(whole.iter().all(|count| *count == whole[0]), "{counts:?}");
    }

    #[test]
    fn the_later_part_of_a_long_series_may_be_read_first() {
        let mut series = Series::new(Axis::Rounds);
        for i in (6000..10_000u64).chain(0..6000) {
            series.push(point(2 * i, i as f64, i as f64));
            series.push(point(2 * i + 1, i as f64, i as f64));
            if series.len() > 64 {
                series.compact(64);
            }
        }
        series.finish();
        assert_eq!(series.rounds, 10_000);
        let last = series.points().last().unwrap();
        assert_eq!((last.round, last.count), (9999.0, 2.0));
    }

    #[test]
    fn a_long_series_keeps_its_shape_in_few_points() {
        let mut series = Series::new(Axis::Rounds);
        for i in 0..100_000u64 {
            series.push(point(i, i as f64, i as f64));
            if series.len() > 64 {
                series.compact(64);
            }
        }
        series.finish();
        assert!((30..=64).contains(&series.len()), "{}", series.len());
        assert_eq!(series.rounds, 100_000);
        assert_eq!((series.first_rss(), series.peak_rss()), (0.0, 99_999.0));
        let (position, last) = series.positioned().last().unwrap();
        assert_eq!(
            (position, last.round, last.peak),
            (99_999.0, 99_999.0, 99_999.0)
        );
        let middle = &series.points()[series.len() / 2];
        let off = (middle.sizes[Size::Rss] - middle.round).abs();
        assert!(off <= 4096.0, "{off}");
    }
}
