//! Robust statistics, which a few outliers do not change.

/// The median; 0 for no values. Reorders the values.
pub fn median_mut(values: &mut [f64]) -> f64 {
    let n = values.len();
    if n == 0 {
        return 0.0;
    }
    let (below, upper, _) = values.select_nth_unstable_by(n / 2, f64::total_cmp);
    let upper = *upper;
    if n % 2 == 1 {
        return upper;
    }
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (lower + upper) / 2.0
}

pub fn median(values: &[f64]) -> f64 {
    median_mut(&mut values.to_vec())
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
fn robust_deviation(values: &[f64]) -> f64 {
    let middle = median(values);
    let mut distances: Vec<f64> = values.iter().map(|v| (v - middle).abs()).collect();
    1.4826 * median_mut(&mut distances)
}

/// The noise of a series, estimated from its steps. A trend or a single jump does not raise it.
pub fn noise(values: &[f64]) -> f64 {
    let steps: Vec<f64> = values.windows(2).map(|w| w[1] - w[0]).collect();
    robust_deviation(&steps) / std::f64::consts::SQRT_2
}

/// Replaces one or two adjacent outliers by the values that their neighbours predict. The tips of a
/// sawtooth stay, because a high outlier has a low one next to it.
pub fn without_outliers(x: &[f64], values: &[f64], noise: f64) -> Vec<f64> {
    let n = values.len();
    let slope = |i: usize| (values[i] - values[i - 1]) / (x[i] - x[i - 1]);
    let slope = median_mut(&mut (1..n).map(slope).collect::<Vec<_>>());
    let predicted: Vec<f64> = (0..n).map(|i| prediction(x, values, i, slope)).collect();
    // 1 for an outlier above its prediction, -1 below it, 0 for others.
    let outlier_sign = |i: usize| match values[i] - predicted[i] {
        off if off.abs() > 5.0 * noise => off.signum(),
        _ => 0.0,
    };
    let signs: Vec<f64> = (0..n).map(outlier_sign).collect();
    let mut cleaned = values.to_vec();
    let mut start = 0;
    for run in signs.chunk_by(|a, b| a == b) {
        let end = start + run.len();
        let is_normal = |i: Option<usize>| i.and_then(|i| signs.get(i)).is_none_or(|s| *s == 0.0);
        let is_isolated = is_normal(start.checked_sub(1)) && is_normal(Some(end));
        if run[0] != 0.0 && run.len() <= 2 && is_isolated {
            cleaned[start..end].copy_from_slice(&predicted[start..end]);
        }
        start = end;
    }
    cleaned
}

/// The median of the neighbours, each moved along the slope to `x[i]`.
fn prediction(x: &[f64], values: &[f64], i: usize, slope: f64) -> f64 {
    const NEIGHBOURS: usize = 3;
    let around = i.saturating_sub(NEIGHBOURS)..(i + NEIGHBOURS + 1).min(values.len());
    let moved = |j: usize| values[j] + slope * (x[i] - x[j]);
    median_mut(&mut around.filter(|&j| j != i).map(moved).collect::<Vec<_>>())
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

    #[test]
    fn noise_ignores_a_trend_and_a_jump() {
        let mut series: Vec<f64> = (0..100).map(|i| 10.0 * i as f64 + (i % 2) as f64).collect();
        let before = noise(&series);
        series[50..].iter_mut().for_each(|v| *v += 1e6);
        let after = noise(&series);
        assert!((after - before).abs() < 0.2, "{before} {after}");
    }

    #[test]
    fn isolated_spikes_are_replaced_and_steps_and_teeth_stay() {
        let mut series = vec![5.0; 20];
        series[8] = 500.0;
        series[14..].iter_mut().for_each(|v| *v = 50.0);
        series[19] = 900.0;
        let x: Vec<f64> = (0..40).map(f64::from).collect();
        let cleaned = without_outliers(&x[..20], &series, 1.0);
        assert_eq!([8, 13, 14, 19].map(|i| cleaned[i]), [5.0, 5.0, 50.0, 50.0]);
        let teeth: Vec<f64> = (0..40).map(|i| f64::from(i % 5) * 10.0).collect();
        assert_eq!(without_outliers(&x, &teeth, 1.0)[5..35], teeth[5..35]);
    }
}
