//! Robust statistics, which a few outliers do not change.

/// The median; 0 for no values.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// The value below which the share `q` of the values lies; 0 for no values.
pub fn quantile(values: &[f64], q: f64) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let mut sorted = values.to_vec();
    let nth = ((sorted.len() - 1) as f64 * q).round() as usize;
    *sorted.select_nth_unstable_by(nth, f64::total_cmp).1
}

/// The standard deviation of normal values, estimated from the median absolute deviation.
pub fn deviation(values: &[f64]) -> f64 {
    let middle = median(values);
    let distances: Vec<f64> = values.iter().map(|v| (v - middle).abs()).collect();
    1.4826 * median(&distances)
}

/// The noise of a series.
#[derive(Clone, Copy)]
pub struct Noise {
    pub deviation: f64,
    /// The variance of a mean of these samples divided by that of as many independent ones.
    pub inflation: f64,
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
        // How much one sample predicts the next, at least 0.
        let correlation = ((two / one).powi(2) - 1.0).clamp(0.0, MAX_CORRELATION);
        // A short series shows little of the correlation, so its estimate moves to 0.
        let n = y.len() as f64;
        let correlation = correlation * n / (n + 24.0);
        Noise {
            deviation: one / (2.0 * (1.0 - correlation)).sqrt(),
            inflation: (1.0 + correlation) / (1.0 - correlation),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_even_odd_and_no_values() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[]), 0.0);
    }
}
