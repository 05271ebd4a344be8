//! The samples of one process at one stage: one point per round. A long series joins neighbouring
//! points, so its length stays bounded.

use super::order::Order;
use super::sample::{Size, Sizes};

/// The samples of one round, or of several neighbouring rounds in a long series.
#[derive(Clone, Debug)]
pub struct Point {
    pub order: Order,
    /// NaN if the marker has no round.
    pub round: f64,
    pub t: f64,
    /// Mean of the samples.
    pub sizes: Sizes,
    /// Highest RSS of the samples.
    pub peak: f64,
    /// Number of samples.
    pub count: f64,
}

impl Point {
    fn merge(&mut self, other: &Point) {
        self.sizes
            .average_with(self.count, &other.sizes, other.count);
        self.peak = self.peak.max(other.peak);
        self.count += other.count;
        if self.t.is_nan() {
            self.t = other.t;
        }
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

#[derive(Default)]
pub struct Series {
    points: Vec<Point>,
    /// Rounds per point. It doubles whenever there are too many points.
    rounds_per_point: f64,
    /// Rounds in the last point so far.
    rounds_in_last: f64,
    axis: Axis,
    last_round: f64,
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
        self.rounds_per_point = self.rounds_per_point.max(1.0);
        let ends = Some((point.order, point.sizes[Size::Rss]));
        if self.first.is_none_or(|(order, _)| point.order < order) {
            self.first = ends;
        }
        if self.last.is_none_or(|(order, _)| point.order >= order) {
            self.last = ends;
        }
        let same_round = self.rounds > 0 && point.round == self.last_round;
        if !same_round {
            self.rounds += 1;
            self.rounds_in_last += 1.0;
            self.last_round = point.round;
        }
        match self.points.last_mut() {
            Some(last) if same_round || self.rounds_in_last <= self.rounds_per_point => {
                last.merge(&point)
            }
            _ => {
                if self.points.is_empty() {
                    // A trainer that is restarted each round has one point per stage. The default
                    // capacity of four would waste memory.
                    self.points.reserve_exact(1);
                }
                self.points.push(point);
                self.rounds_in_last = 1.0;
            }
        }
    }

    /// Joins neighbouring points until at most `max_points` are left.
    pub fn compact(&mut self, max_points: usize) {
        self.sort();
        while self.points.len() > max_points.max(1) {
            let pairs = self.points.chunks(2).map(|pair| {
                let mut point = pair[0].clone();
                pair[1..].iter().for_each(|other| point.merge(other));
                point
            });
            self.points = pairs.collect();
            self.rounds_per_point *= 2.0;
        }
        self.points.shrink_to_fit();
    }

    fn sort(&mut self) {
        self.points.sort_by_key(|point| point.order);
    }

    /// Sorts the points and joins the samples of one round that came from several files.
    pub fn finish(&mut self) {
        self.sort();
        self.points.dedup_by(|later, earlier| {
            let same = later.round == earlier.round;
            if same {
                earlier.merge(later);
            }
            same
        });
        if self.rounds_per_point <= 1.0 {
            self.rounds = self.points.len() as u64;
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

    /// The unit of the positions: `minute`, `round` or `marker`.
    pub fn unit(&self) -> &'static str {
        match () {
            () if self.has_minutes() => "minute",
            () if self.has_rounds() => "round",
            () => "marker",
        }
    }

    fn has_rounds(&self) -> bool {
        self.points.iter().all(|p| !p.round.is_nan())
    }

    /// The position of each point on the axis, strictly ascending. If a process serves several
    /// jobs, the rounds of a job continue after those of the job before. Points without a round are
    /// numbered.
    pub fn positions(&self) -> Vec<f64> {
        if self.has_minutes() {
            return self.minutes();
        }
        let has_rounds = self.has_rounds();
        let (mut offset, mut last) = (0.0, f64::NEG_INFINITY);
        let place = |(i, point): (usize, &Point)| {
            if !has_rounds {
                return i as f64 * self.rounds_per_point.max(1.0);
            }
            if point.round + offset <= last {
                offset = last + 1.0 - point.round;
            }
            last = point.round + offset;
            last
        };
        self.points.iter().enumerate().map(place).collect()
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
        let mut sizes = Sizes::UNKNOWN;
        sizes[Size::Rss] = rss;
        Point {
            order: Order { epoch: 0, seq },
            round,
            t: seq as f64,
            sizes,
            peak: rss,
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
        let middle = &series.points()[series.len() / 2];
        let off = (middle.sizes[Size::Rss] - middle.round).abs();
        assert!(off <= 4096.0, "{off}");
    }
}
