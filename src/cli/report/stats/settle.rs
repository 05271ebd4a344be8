//! Where the warm-up ends: the first sample from which on all behave as the last half does.

use super::slope::theil_sen;

/// How many sigmas a sample may lie outside of what the last half shows.
const MARGIN: f64 = 3.0;

/// The index of the first settled sample, at most the middle of the series.
pub fn settled_from(x: &[f64], y: &[f64], noise: f64) -> usize {
    let half = y.len() / 2;
    let late = theil_sen(&x[half..], &y[half..]).per_x;
    let whole = theil_sen(x, y).per_x;
    // A series with teeth or jumps in its last half has a slope there that it has not as a whole:
    // extend backwards each way, and believe the one that explains most samples.
    [0.0, late, whole]
        .into_iter()
        .map(|slope| consistent_from(x, y, slope, noise))
        .min()
        .unwrap_or(0)
}

fn consistent_from(x: &[f64], y: &[f64], slope: f64, noise: f64) -> usize {
    let half = y.len() / 2;
    let lifted: Vec<f64> = x.iter().zip(y).map(|(x, y)| y - slope * x).collect();
    let low = lifted[half..].iter().copied().fold(f64::INFINITY, f64::min) - MARGIN * noise;
    let high = lifted[half..]
        .iter()
        .copied()
        .fold(f64::NEG_INFINITY, f64::max)
        + MARGIN * noise;
    let strange = |i: usize| lifted[i] < low || lifted[i] > high;
    // One strange sample is an outlier, except the first one: rounds often start with a cold one.
    let mut from = half;
    while from > 0 && !(strange(from - 1) && (from == 1 || strange(from - 2))) {
        from -= 1;
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(y: &[f64]) -> usize {
        let x: Vec<f64> = (0..y.len()).map(|i| i as f64).collect();
        settled_from(&x, y, 1.0)
    }

    #[test]
    fn a_level_and_a_line_have_no_warm_up() {
        assert_eq!(settled(&[5.0; 20]), 0);
        assert_eq!(
            settled(&(0..40).map(|i| 9.0 * i as f64).collect::<Vec<_>>()),
            0
        );
    }

    #[test]
    fn the_climb_before_a_level_is_warm_up() {
        let y: Vec<f64> = (0..40).map(|i| 100.0 * f64::min(i as f64, 8.0)).collect();
        assert_eq!(settled(&y), 8);
    }

    #[test]
    fn the_climb_before_a_line_is_warm_up() {
        let y: Vec<f64> = (0..40)
            .map(|i| 100.0 * f64::min(i as f64, 8.0) + 2.0 * i as f64)
            .collect();
        assert_eq!(settled(&y), 8);
    }

    #[test]
    fn one_cold_round_is_warm_up() {
        let mut y = vec![700.0; 12];
        y[0] = 100.0;
        assert_eq!(settled(&y), 1);
    }
}
