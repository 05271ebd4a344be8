//! The time that a round takes, and the growth per hour.

use std::ops::Add;

use super::stats::{half_width_of_mean, median, Estimate, MIN_ROUNDS};
use crate::report::model::{Point, Unit};

/// Elapsed seconds per elapsed unit.
pub struct Pace {
    pub seconds: Estimate,
    /// The sum of the pauses that `seconds` does not count: the machine slept, or the job waited.
    pub pause: Option<f64>,
    /// Seconds from the first marker to the last.
    observed: f64,
}

impl Pace {
    /// `None` for few rounds or without times.
    pub fn of(unit: Unit, x: &[f64], points: &[Point]) -> Option<Pace> {
        let times: Option<Vec<f64>> = points.windows(2).map(seconds_between).collect();
        let times = times?;
        let observed = times.iter().sum();
        let (seconds, pause) = match unit {
            Unit::Minute => (Estimate::around(60.0, 0.0), None),
            Unit::Round | Unit::Marker => seconds_per_round(x, times)?,
        };
        Some(Pace {
            seconds,
            pause,
            observed,
        })
    }

    /// Bytes per hour with their interval, if the observation is long enough. Both the growth per
    /// unit and the length of a unit are uncertain.
    pub fn per_hour(&self, growth: Estimate) -> Option<Estimate> {
        const MIN_SECONDS: f64 = 60.0;
        let pace = self.seconds;
        let rate = growth.value / pace.value;
        // The rate at a bound of the growth, and at a bound of the pace, which is a quotient and not nearly a line.
        let distance = |growth_bound: f64, pace_bound: f64| {
            let of_pace = growth.value.abs() / pace_bound.max(0.0) - rate.abs();
            f64::hypot(growth_bound / pace.value - rate, of_pace)
        };
        let (to_low, to_high) = match rate > 0.0 {
            true => (pace.high, pace.low),
            false => (pace.low, pace.high),
        };
        let low = rate - distance(growth.low, to_low);
        let high = rate + distance(growth.high, to_high);
        let is_known = self.observed >= MIN_SECONDS && low.is_finite() && high.is_finite();
        let per_second = Estimate {
            value: rate,
            low,
            high,
        };
        is_known.then_some(per_second.map(|rate| 3600.0 * rate))
    }
}

/// Seconds between two points; 0 if the clock was set back.
fn seconds_between(pair: &[Point]) -> Option<f64> {
    let seconds = |of: fn(&Point) -> Option<f64>| Some(of(&pair[1])? - of(&pair[0])?);
    let seconds = seconds(|point| point.mono).or_else(|| seconds(|point| point.t))?;
    Some(seconds.max(0.0))
}

/// The total time over the number of rounds: a median would miss the pauses between quick rounds. Rare pauses of more
/// than ten times the median round are left out, and their sum is returned.
fn seconds_per_round(x: &[f64], mut times: Vec<f64>) -> Option<(Estimate, Option<f64>)> {
    const LONG_PAUSE: f64 = 10.0;
    /// More frequent pauses, if there is more than one, belong to the pace.
    const MIN_ROUNDS_PER_PAUSE: usize = 10;
    let rounds: Vec<f64> = x.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let per_round = |times: &[f64]| -> Vec<f64> {
        let pairs = times.iter().zip(&rounds);
        pairs.map(|(time, rounds)| time / rounds).collect()
    };
    let typical = median(&per_round(&times));
    let usual = |at: usize| typical * rounds[at];
    let is_long = |at: &usize| typical > 0.0 && times[*at] > LONG_PAUSE * usual(*at);
    let mut pauses: Vec<usize> = (0..times.len()).filter(is_long).collect();
    if pauses.len() > 1 && MIN_ROUNDS_PER_PAUSE * pauses.len() > times.len() {
        pauses.clear();
    }
    let pause = pauses.iter().map(|at| times[*at]).reduce(f64::add);
    pauses.iter().for_each(|at| times[*at] = usual(*at));
    let count = x.last()? - x.first()?;
    let mean = times.iter().sum::<f64>() / count;
    if x.len() < MIN_ROUNDS || !(mean > 0.0 && mean.is_finite()) {
        return None;
    }
    // One more long pause could have been observed, or one less.
    let longest = times.iter().copied().fold(0.0, f64::max);
    let of_pause = (longest - median(&times)) / count;
    let half_width = half_width_of_mean(&per_round(&times)).max(of_pause);
    Some((Estimate::around(mean, half_width), pause))
}
