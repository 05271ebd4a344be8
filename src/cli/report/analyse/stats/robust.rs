//! Order statistics: numbers that one wild sample cannot move.

/// The median; 0 for no values. Reorders them.
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

/// The standard deviation of a normal sample, taken from the median distance to the median.
pub fn spread(values: &[f64]) -> f64 {
    let middle = median(values);
    let mut distances: Vec<f64> = values.iter().map(|v| (v - middle).abs()).collect();
    1.4826 * median_mut(&mut distances)
}

/// The noise of a series, from its steps: neither a trend nor a jump widens it.
pub fn noise(values: &[f64]) -> f64 {
    let steps: Vec<f64> = values.windows(2).map(|w| w[1] - w[0]).collect();
    spread(&steps) / std::f64::consts::SQRT_2
}

/// One or two samples far off what their neighbours predict are replaced by the prediction.
/// A sawtooth keeps its tips: there a high sample has a low one beside it.
pub fn without_outliers(x: &[f64], values: &[f64], noise: f64) -> Vec<f64> {
    let n = values.len();
    let slope = |i: usize| (values[i] - values[i - 1]) / (x[i] - x[i - 1]);
    let slope = median_mut(&mut (1..n).map(slope).collect::<Vec<_>>());
    let predicted: Vec<f64> = (0..n).map(|i| prediction(x, values, i, slope)).collect();
    let wild = |i: usize| match values[i] - predicted[i] {
        off if off.abs() > 5.0 * noise => off.signum(),
        _ => 0.0,
    };
    let wild: Vec<f64> = (0..n).map(wild).collect();
    let mut cleaned = values.to_vec();
    let mut start = 0;
    for run in wild.chunk_by(|a, b| a == b) {
        let end = start + run.len();
        let beside = |i: Option<usize>| i.and_then(|i| wild.get(i)).is_none_or(|w| *w == 0.0);
        let alone = beside(start.checked_sub(1)) && beside(Some(end));
        if run[0] != 0.0 && run.len() <= 2 && alone {
            cleaned[start..end].copy_from_slice(&predicted[start..end]);
        }
        start = end;
    }
    cleaned
}

fn prediction(x: &[f64], values: &[f64], i: usize, slope: f64) -> f64 {
    const REACH: usize = 3;
    let around = i.saturating_sub(REACH)..(i + REACH + 1).min(values.len());
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
    fn noise_ignores_trend_and_jump() {
        let mut series: Vec<f64> = (0..100).map(|i| 10.0 * i as f64 + (i % 2) as f64).collect();
        let before = noise(&series);
        series[50..].iter_mut().for_each(|v| *v += 1e6);
        let after = noise(&series);
        assert!((after - before).abs() < 0.2, "{before} {after}");
    }

    #[test]
    fn lone_spikes_go_and_a_step_and_teeth_stay() {
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
