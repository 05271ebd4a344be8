//! The mean of autocorrelated samples with its 95 % interval. A trend of the samples is not noise.

use serde::Serialize;

use super::line::{lag_1_correlation, mean, t_975, Known};

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    pub value: f64,
    /// NaN for fewer than three samples.
    #[serde(rename = "low_95")]
    pub low: f64,
    #[serde(rename = "high_95")]
    pub high: f64,
}

/// Samples that resemble their neighbours count as fewer independent ones.
pub fn mean_interval(values: &[f64]) -> Interval {
    let (n, value) = (values.len() as f64, mean(values));
    if n < 3.0 {
        let (low, high) = (f64::NAN, f64::NAN);
        return Interval { value, low, high };
    }
    let mut line = Known::constant(values.len());
    line.add(&(0..values.len()).map(|i| i as f64).collect::<Vec<_>>());
    let left = line.left_of(values);
    let correlation = lag_1_correlation(&left).clamp(0.0, 0.95);
    let independent = (n * (1.0 - correlation) / (1.0 + correlation)).max(2.0);
    let variance = left.iter().map(|v| v * v).sum::<f64>() / (n - 1.0);
    let half = t_975(independent - 1.0) * (variance / independent).sqrt();
    Interval {
        value,
        low: value - half,
        high: value + half,
    }
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
