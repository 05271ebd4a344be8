//! The mean of autocorrelated samples with its 95 % interval.

use serde::Serialize;

use super::line::{t_975, Known, Line, Slope, CHOICE};

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    pub value: f64,
    /// NaN for fewer than three samples.
    #[serde(rename = "low_95")]
    pub low: f64,
    #[serde(rename = "high_95")]
    pub high: f64,
}

/// A trend of the samples is no noise if it is certain. Sizes that wander resemble one, and their slowest changes show most
/// of the error of the mean.
pub fn mean_interval(values: &[f64]) -> Interval {
    const SLOWEST: usize = 3;
    let n = values.len();
    let value = values.iter().sum::<f64>() / n.max(1) as f64;
    let half = if n < 3 {
        f64::NAN
    } else {
        let x: Vec<f64> = (0..n).map(|i| i as f64).collect();
        let Slope { low, high, .. } = Line::through(&x, values).slope;
        let mut known = Known::constant(n);
        if low > 0.0 || high < 0.0 {
            known.add(&x);
        }
        CHOICE * half_width(known.slowest(values, SLOWEST), n)
    };
    Interval {
        value,
        low: value - half,
        high: value + half,
    }
}

/// Half of the 95 % interval of the mean of samples whose slow changes are noise, too. A season does not widen it.
pub fn half_width_of_mean(values: &[f64]) -> f64 {
    let n = values.len();
    half_width(Known::constant(n).slow_deviation(values), n)
}

/// Half of the 95 % interval of a mean, from the deviation and its degrees of freedom.
fn half_width((deviation, degrees): (f64, f64), samples: usize) -> f64 {
    t_975(degrees) * deviation / (samples as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::Random;
    use crate::report::units::MB;

    fn width(y: &dyn Fn(usize) -> usize) -> f64 {
        let found = mean_interval(&(0..60).map(|i| y(i) as f64 * MB).collect::<Vec<_>>());
        found.high - found.low
    }

    #[test]
    fn samples_that_resemble_their_neighbours_widen_the_interval_and_a_trend_does_not() {
        let (fast, slow) = (width(&|i| i * 23 % 20), width(&|i| (i + 15) / 30 % 2 * 10));
        assert!(slow > 2.0 * fast, "{slow} {fast}");
        let rising = width(&|i| i * 23 % 20 + 1000 * i);
        assert!(rising < 2.0 * fast, "{rising} {fast}");
        assert!(mean_interval(&[1.0, 2.0]).low.is_nan());
    }

    /// The percentage of intervals that contain the true mean of an autoregressive series.
    fn percent_true(correlation: f64) -> usize {
        let mut random = Random::new(3);
        let is_true = |_: &usize| {
            let mut last = random.normal();
            let mut next = || {
                let fresh = (1.0 - correlation * correlation).sqrt();
                last = correlation * last + fresh * random.normal();
                last * MB
            };
            let found = mean_interval(&(0..150).map(|_| next()).collect::<Vec<_>>());
            found.low <= 0.0 && 0.0 <= found.high
        };
        (0..200).filter(is_true).count() / 2
    }

    #[test]
    fn the_interval_contains_the_mean_of_noise_and_mostly_that_of_sizes_that_wander() {
        let found = [0.0, 0.9, 0.97].map(percent_true);
        assert!(
            found[0] >= 93 && found[1] >= 90 && found[2] >= 75,
            "{found:?}"
        );
    }
}
