//! The Theil-Sen slope with Sen's confidence interval, widened for samples that follow each other.

use super::robust::{median, median_mut};

/// Growth of y per unit of x.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Slope {
    pub per_x: f64,
    /// The bounds of the 95 % confidence interval.
    pub low: f64,
    pub high: f64,
    /// Kendall's statistic in standard deviations: how surely the slope is not zero.
    pub sigmas: f64,
}

impl Slope {
    /// The probability, 0 to 1, that the direction of the slope is no accident.
    pub fn confidence(&self) -> f64 {
        erf(self.sigmas.abs() / std::f64::consts::SQRT_2)
    }
}

/// All pairs are looked at: `x` should hold some hundred values at the most.
pub fn theil_sen(x: &[f64], y: &[f64]) -> Slope {
    let n = x.len();
    let mut slopes = Vec::with_capacity(n * n / 2);
    let mut concordance = 0i64;
    for i in 0..n {
        for j in i + 1..n {
            let run = x[j] - x[i];
            if run != 0.0 {
                let rise = y[j] - y[i];
                slopes.push(rise / run);
                concordance += i64::from(rise * run > 0.0) - i64::from(rise * run < 0.0);
            }
        }
    }
    if slopes.is_empty() {
        return Slope::default();
    }
    let per_x = median_mut(&mut slopes);
    let deviation = (kendall_variance(y) * dependence(x, y, per_x)).sqrt();
    let half = 1.96 * deviation;
    let pairs = slopes.len() as f64;
    let mut at = |rank: f64| {
        let rank = (rank.max(0.0) as usize).min(slopes.len() - 1);
        *slopes.select_nth_unstable_by(rank, f64::total_cmp).1
    };
    let continuous = (concordance.abs() - 1).max(0) as f64 * concordance.signum() as f64;
    Slope {
        per_x,
        low: at(((pairs - half) / 2.0).floor()),
        high: at(((pairs + half) / 2.0).ceil()),
        sigmas: if deviation > 0.0 {
            continuous / deviation
        } else {
            0.0
        },
    }
}

/// The variance of Kendall's S for independent samples, with its correction for ties.
fn kendall_variance(y: &[f64]) -> f64 {
    let term = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0) / 18.0;
    let mut sorted = y.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let ties: f64 = sorted
        .chunk_by(|a, b| a == b)
        .map(|equal| term(equal.len() as f64))
        .sum();
    term(y.len() as f64) - ties
}

/// What `Slope::sigmas` is when each of n samples is higher than the one before.
pub fn most_sigmas(n: usize) -> f64 {
    let n = n as f64;
    let pairs = n * (n - 1.0) / 2.0;
    f64::max(pairs - 1.0, 0.0) / f64::max(n * (n - 1.0) * (2.0 * n + 5.0) / 18.0, 1.0).sqrt()
}

/// By how much following samples that resemble each other widen the variance (Hamed and Rao 1998),
/// summed over the lags up to the first one without resemblance.
fn dependence(x: &[f64], y: &[f64], per_x: f64) -> f64 {
    let n = y.len();
    if n < 8 {
        return 1.0;
    }
    let ranks = ranks(
        &x.iter()
            .zip(y)
            .map(|(x, y)| y - per_x * x)
            .collect::<Vec<_>>(),
    );
    let middle = (n as f64 - 1.0) / 2.0;
    let variance: f64 = ranks.iter().map(|r| (r - middle).powi(2)).sum();
    if variance == 0.0 {
        return 1.0;
    }
    let cubic = |n: f64| n * (n - 1.0) * (n - 2.0);
    let mut sum = 0.0;
    for lag in 1..n / 2 {
        let products = ranks
            .iter()
            .zip(&ranks[lag..])
            .map(|(a, b)| (a - middle) * (b - middle));
        let correlation = products.sum::<f64>() / variance;
        if correlation < 0.05 {
            break;
        }
        sum += cubic((n - lag) as f64) * correlation;
    }
    1.0 + 2.0 * sum / cubic(n as f64)
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let shared = first as f64 + (equal.len() - 1) as f64 / 2.0;
        equal.iter().for_each(|&i| ranks[i] = shared);
        first += equal.len();
    }
    ranks
}

/// The line of the slope through the middle of the points: what each point lies above it.
pub fn residuals(x: &[f64], y: &[f64], per_x: f64) -> Vec<f64> {
    let lifted: Vec<f64> = x.iter().zip(y).map(|(x, y)| y - per_x * x).collect();
    let middle = median(&lifted);
    lifted.into_iter().map(|v| v - middle).collect()
}

/// Abramowitz and Stegun 7.1.26: good to 1.5e-7, more than a percentage shows.
fn erf(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.3275911 * x);
    let coefficients = [
        1.061405429,
        -1.453152027,
        1.421413741,
        -0.284496736,
        0.254829592,
    ];
    let polynomial = coefficients.iter().fold(0.0, |sum, c| sum * t + c) * t;
    1.0 - polynomial * (-x * x).exp()
}

#[cfg(test)]
mod tests {
    use super::super::random::Random;
    use super::*;

    fn rounds(n: usize) -> Vec<f64> {
        (0..n).map(|i| i as f64).collect()
    }

    #[test]
    fn a_line_gives_its_slope_and_wild_points_do_not_move_it() {
        let x = rounds(30);
        let mut y: Vec<f64> = x.iter().map(|x| 3.0 * x + 7.0).collect();
        y[4] = 1e9;
        y[20] = -1e9;
        let slope = theil_sen(&x, &y);
        assert_eq!(slope.per_x, 3.0);
        assert!(slope.low <= 3.0 && 3.0 <= slope.high);
        assert!(slope.confidence() > 0.999);
    }

    #[test]
    fn nothing_one_point_and_equal_points_have_no_slope() {
        assert_eq!(theil_sen(&[], &[]), Slope::default());
        assert_eq!(theil_sen(&[1.0], &[5.0]), Slope::default());
        assert_eq!(theil_sen(&[1.0, 1.0], &[5.0, 9.0]), Slope::default());
        assert_eq!(theil_sen(&rounds(9), &[4.0; 9]).per_x, 0.0);
    }

    /// An interval that is called 95 % must hold the truth in about 95 of 100 series.
    #[test]
    fn the_interval_covers_the_truth_with_independent_and_with_dependent_noise() {
        for (memory, least) in [(0.0, 0.92), (0.5, 0.88)] {
            let covered = (0..500)
                .filter(|&seed| {
                    let mut random = Random::new(seed);
                    let mut noise = 0.0;
                    let x = rounds(60);
                    let y: Vec<f64> = x
                        .iter()
                        .map(|x| {
                            noise = memory * noise + random.normal();
                            0.5 * x + noise
                        })
                        .collect();
                    let slope = theil_sen(&x, &y);
                    slope.low <= 0.5 && 0.5 <= slope.high
                })
                .count();
            assert!(
                covered as f64 >= least * 500.0,
                "memory {memory}: {covered} of 500"
            );
        }
    }
}
