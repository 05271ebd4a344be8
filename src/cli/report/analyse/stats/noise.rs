//! The noise of a series: its deviation, and how much one sample predicts the next.

use super::robust::deviation;

#[derive(Clone, Copy, Debug, Default)]
pub struct Noise {
    pub deviation: f64,
    /// The autocorrelation of neighbouring samples, at least 0.
    pub correlation: f64,
}

/// A stronger correlation cannot be told from growth.
const MAX_CORRELATION: f64 = 0.8;

impl Noise {
    /// Compares the steps between neighbours with those between every second sample, as robust
    /// deviations (Chakar and others 2017). Neither a trend nor a few steps change the result.
    pub fn of(y: &[f64], resolution: f64) -> Noise {
        let steps = |distance: usize| -> f64 {
            let pairs = y.iter().zip(y.iter().skip(distance));
            deviation(&pairs.map(|(a, b)| b - a).collect::<Vec<_>>())
        };
        let (one, two) = (steps(1).max(resolution), steps(2).max(resolution));
        let correlation = ((two / one).powi(2) - 1.0).clamp(0.0, MAX_CORRELATION);
        // A short series shows little of the correlation, so its estimate moves to 0.
        let n = y.len() as f64;
        let correlation = correlation * n / (n + 24.0);
        Noise {
            deviation: one / (2.0 * (1.0 - correlation)).sqrt(),
            correlation,
        }
    }

    /// The variance of a mean of these samples divided by that of as many independent ones.
    pub fn inflation(&self) -> f64 {
        (1.0 + self.correlation) / (1.0 - self.correlation)
    }
}
