//! The mean of autocorrelated samples with its 95 % interval. A trend of the samples is not noise.

use serde::Serialize;

use super::line::{t_975, Known, CHOICE};

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    pub value: f64,
    /// NaN for fewer than three samples.
    #[serde(rename = "low_95")]
    pub low: f64,
    #[serde(rename = "high_95")]
    pub high: f64,
}

pub fn mean_interval(values: &[f64]) -> Interval {
    let mut line = Known::constant(values.len());
    line.add(&(0..values.len()).map(|i| i as f64).collect::<Vec<_>>());
    let value = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let half = match values.len() {
        0..3 => f64::NAN,
        _ => CHOICE * half_width(&line, values),
    };
    Interval {
        value,
        low: value - half,
        high: value + half,
    }
}

/// Half of the 95 % interval of the mean of samples whose slow changes are noise, too. A season does not widen it.
pub fn half_width_of_mean(values: &[f64]) -> f64 {
    half_width(&Known::constant(values.len()), values)
}

/// Half of the 95 % interval of a mean, from the slow changes that no shape explains.
fn half_width(known: &Known, values: &[f64]) -> f64 {
    let (deviation, degrees) = known.slow_deviation(values);
    t_975(degrees) * deviation / (values.len() as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_that_resemble_their_neighbours_widen_the_interval() {
        let width = |y: &dyn Fn(usize) -> usize| {
            let found = mean_interval(&(0..60).map(|i| y(i) as f64).collect::<Vec<_>>());
            found.high - found.low
        };
        let (fast, slow) = (width(&|i| i * 23 % 20), width(&|i| i % 20));
        assert!(slow > 2.0 * fast, "{slow} {fast}");
        let rising = width(&|i| i * 23 % 20 + 1000 * i);
        assert!(rising < 1.2 * fast, "{rising} {fast}");
        assert!(mean_interval(&[1.0, 2.0]).low.is_nan());
    }
}
