//! The samples of one process at one stage: one point per round. A long series joins neighbouring
//! points, so its length stays bounded.

use std::fmt;

use super::order::Order;
use super::sample::{Size, Sizes};

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
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Axis {
    #[default]
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

#[derive(Default)]
pub struct Series {
    points: Vec<Point>,
    /// Visits per point. It doubles whenever there are too many points.
    visits_per_point: u64,
    /// Visits in the last point so far.
    visits_in_last: u64,
    axis: Axis,
    /// The round and site of the last sample.
    last_visit: Option<(f64, Option<u16>)>,
    /// Rounds seen, or samples if they have no rounds.
    pub rounds: u64,
    /// RSS of the first and of the last sample.
    first: Option<(Order, f64)>,
    last: Option<(Order, f64)>,
    /// The last visit, once points have been joined. The last point is the mean of several visits.
    last_visit_alone: Option<Box<Point>>,
}

impl Series {
    pub fn new(axis: Axis) -> Self {
        Series {
            axis,
            ..Series::default()
        }
    }

    pub fn len(&self) -> usize {
        self.points.len()
    }

    pub fn push(&mut self, mut point: Point) {
        if self.axis == Axis::Minutes {
            point.round = f64::NAN;
        }
        self.visits_per_point = self.visits_per_point.max(1);
        let ends = Some((point.order, point.sizes[Size::Rss]));
        if self.first.is_none_or(|(order, _)| point.order < order) {
            self.first = ends;
        }
        if self.last.is_none_or(|(order, _)| point.order >= order) {
            self.last = ends;
        }
        self.keep_last_visit(&point);
        let visit = (point.round, point.site);
        let last_visit = self.last_visit.replace(visit);
        let is_same_visit = last_visit == Some(visit);
        if last_visit.is_none_or(|(round, _)| round != point.round) {
            self.rounds += 1;
        }
        if (is_same_visit || self.visits_in_last < self.visits_per_point)
            && let Some(last) = self.points.last_mut()
        {
            self.visits_in_last += u64::from(!is_same_visit);
            last.merge(&point);
            return;
        }
        if self.points.is_empty() {
            // A trainer that is restarted each round has one point per stage. The default capacity
            // of four would waste memory.
            self.points.reserve_exact(1);
        }
        self.points.push(point);
        self.visits_in_last = 1;
    }

    fn keep_last_visit(&mut self, point: &Point) {
        let Some(kept) = &mut self.last_visit_alone else {
            return;
        };
        if kept.is_same_visit(point) {
            kept.merge(point);
        } else if kept.order < point.order {
            **kept = point.clone();
        }
    }

    /// Joins neighbouring points until at most `max_points` are left.
    pub fn compact(&mut self, max_points: usize) {
        self.sort();
        if self.last_visit_alone.is_none() && self.points.len() > max_points.max(1) {
            self.last_visit_alone = self.points.last().cloned().map(Box::new);
        }
        while self.points.len() > max_points.max(1) {
            if self.points.len().is_multiple_of(2) {
                self.visits_in_last += self.visits_per_point;
            }
            let pairs = self.points.chunks(2).map(|pair| {
                let mut point = pair[0].clone();
                pair[1..].iter().for_each(|other| point.merge(other));
                point
            });
            self.points = pairs.collect();
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
        if self.visits_per_point <= 1 {
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
        let last_visit = self.last_visit_alone.as_deref_mut();
        let points = self.points.iter_mut().chain(last_visit);
        for point in points.filter(|point| point.round.is_nan()) {
            point.round = round_at(point.order).unwrap_or(f64::NAN);
        }
        if self.visits_per_point <= 1 {
            let rounds = self.points.chunk_by(|a, b| a.round == b.round);
            self.rounds = rounds.count() as u64;
        }
    }

    /// Adds the points of a later process.
    pub fn append(&mut self, later: Series) {
        self.visits_per_point = self.visits_per_point.max(1);
        self.axis = later.axis;
        self.first = self.first.or(later.first);
        self.last = later.last.or(self.last);
        self.rounds += later.rounds;
        self.last_visit_alone = later.last_visit_alone;
        self.points.extend(later.points);
    }

    /// Numbers the process of these points, so that they follow those of earlier processes. Points
    /// without a round get this one.
    pub fn place_in_chain(&mut self, place: u64, round: f64) {
        let last_visit = self.last_visit_alone.as_deref_mut();
        for point in self.points.iter_mut().chain(last_visit) {
            point.order.epoch = place;
            if point.round.is_nan() {
                point.round = round;
            }
        }
    }

    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The last visit. In a long series its point is the mean of several.
    pub fn last_visit(&self) -> Option<&Point> {
        self.last_visit_alone.as_deref().or(self.points.last())
    }

    /// The last visit, if the last point joins it with others.
    pub fn joined_last(&self) -> Option<&Point> {
        self.last_visit_alone.as_deref()
    }

    /// The position of the last visit on the axis of `positions`.
    pub fn last_position(&self) -> Option<f64> {
        let (last, visit) = (self.points.last()?, self.last_visit()?);
        let within = match () {
            () if self.has_minutes() => (visit.t - last.t) / 60.0,
            () if self.has_rounds() => visit.round - last.round,
            () => self.visits_in_last.max(1) as f64 - 1.0,
        };
        Some(self.positions().last()? + within.max(0.0))
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
    /// job continue after those of the job before. Points without a round are numbered.
    pub fn positions(&self) -> Vec<f64> {
        if self.has_minutes() {
            return self.minutes();
        }
        if !self.has_rounds() {
            let step = self.visits_per_point.max(1) as f64;
            return (0..self.points.len()).map(|i| i as f64 * step).collect();
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

    /// The points with their positions, for a chart: it ends with the last visit alone.
    pub fn drawn(&self) -> Vec<(f64, &Point)> {
        let mut points: Vec<(f64, &Point)> = self.positioned().collect();
        let last = self.last_position().zip(self.joined_last());
        points.extend(last.filter(|(x, _)| points.last().is_none_or(|(before, _)| before < x)));
        points
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
        let mut sizes = Sizes::UNKNOWN;
        sizes[Size::Rss] = rss;
        Point {
            order: Order { epoch: 0, seq },
            round,
            site: None,
            t: seq as f64,
            sizes,
            peak: rss,
            highest: rss,
            recent_peak: f64::NAN,
            mono: f64::NAN,
            count: 1.0,
        }
    }

    /// Points in the order of writing: sequence number, round, RSS.
    fn series(points: impl IntoIterator<Item = (u64, f64, f64)>) -> Series {
        let mut series = Series::default();
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
        let mut series = Series::default();
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
        let mut series = Series::default();
        for i in 0..1000u64 {
            series.push(point(i, i as f64, i as f64));
            if series.len() > 65 {
                series.compact(65);
            }
        }
        let counts: Vec<f64> = series.points().iter().map(|point| point.count).collect();
        let whole = &counts[..counts.len() - 1];
        assert!(whole.iter().all(|count| *count == whole[0]), "{counts:?}");
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
        series.finish();
        assert!((30..=64).contains(&series.len()), "{}", series.len());
        assert_eq!(series.rounds, 100_000);
        assert_eq!((series.first_rss(), series.peak_rss()), (0.0, 99_999.0));
        let last = series.last_visit().unwrap();
        assert_eq!((last.round, last.peak), (99_999.0, 99_999.0));
        assert_eq!(series.last_position(), Some(99_999.0));
        let middle = &series.points()[series.len() / 2];
        let off = (middle.sizes[Size::Rss] - middle.round).abs();
        assert!(off <= 4096.0, "{off}");
    }
}
