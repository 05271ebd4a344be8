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
pub fn deviation(values: &[f64]) -> f64 {
    let middle = median(values);
    let mut distances: Vec<f64> = values.iter().map(|v| (v - middle).abs()).collect();
    1.4826 * median_mut(&mut distances)
}

/// A line through most samples: by Theil (1950) and Sen (1968), then by least squares of the samples
/// near it.
pub struct RobustLine {
    slope: f64,
    middle: f64,
    level: f64,
    deviation: f64,
}

impl RobustLine {
    /// Samples at a larger distance, in deviations, are outside.
    const NEAR: f64 = 4.0;
    /// The share of the samples that must be near the line.
    const MIN_NEAR: f64 = 0.6;

    pub fn through(x: &[f64], y: &[f64], resolution: f64) -> Option<RobustLine> {
        let pairs = (0..x.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
        let mut slopes: Vec<f64> = pairs.map(|(i, j)| (y[i] - y[j]) / (x[i] - x[j])).collect();
        let slope = median_mut(&mut slopes);
        let middle = median(x);
        let left = |slope: f64| -> Vec<f64> {
            let pairs = x.iter().zip(y);
            pairs.map(|(x, y)| y - slope * (x - middle)).collect()
        };
        let around = left(slope);
        let (level, deviation) = (median(&around), deviation(&around).max(resolution));
        let mut line = RobustLine {
            slope,
            middle,
            level,
            deviation,
        };
        for _ in 0..4 {
            let near: Vec<usize> = (0..x.len())
                .filter(|i| !line.is_outside(x[*i], y[*i]))
                .collect();
            if (near.len() as f64) < Self::MIN_NEAR * x.len() as f64 {
                return None;
            }
            let n = near.len() as f64;
            let mean = |of: &[f64]| near.iter().map(|i| of[*i]).sum::<f64>() / n;
            let (mean_x, mean_y) = (mean(x), mean(y));
            let sum = |of: &dyn Fn(usize) -> f64| near.iter().map(|i| of(*i)).sum::<f64>();
            let xx = sum(&|i| (x[i] - mean_x).powi(2));
            let xy = sum(&|i| (x[i] - mean_x) * (y[i] - mean_y));
            line.slope = xy / xx;
            line.level = mean_y - line.slope * (mean_x - middle);
            let squares = sum(&|i| (y[i] - line.at(x[i])).powi(2));
            line.deviation = (squares / n).sqrt().max(resolution);
        }
        Some(line)
    }

    pub fn at(&self, x: f64) -> f64 {
        self.level + self.slope * (x - self.middle)
    }

    pub fn is_outside(&self, x: f64, y: f64) -> bool {
        (y - self.at(x)).abs() > Self::NEAR * self.deviation
    }
}

/// Replaces up to three adjacent outliers by the values that their neighbours predict. The tips of a
/// sawtooth stay, because a high outlier has a low one next to it.
pub fn without_outliers(x: &[f64], values: &[f64], noise: f64) -> Vec<f64> {
    let n = values.len();
    let slope = |i: usize| (values[i] - values[i - 1]) / (x[i] - x[i - 1]);
    let slope = median_mut(&mut (1..n).map(slope).collect::<Vec<_>>());
    let predicted = |i: usize, from: usize, to: usize| prediction(x, values, i, slope, from..to);
    // 1 for an outlier above its neighbours on both sides, -1 below them, 0 for others.
    let outlier_sign = |i: usize| {
        let before = predicted(i, i.saturating_sub(NEIGHBOURS), i);
        let after = predicted(i, i + 1, (i + 1 + NEIGHBOURS).min(n));
        let off = [before, after].map(|side| side.map(|side| values[i] - side));
        let mut off = off.into_iter().flatten();
        let first = off.next().unwrap_or(0.0);
        let is_far = |off: f64| off * first > 0.0 && off.abs() > 5.0 * noise;
        match is_far(first) && off.all(is_far) {
            true => first.signum(),
            false => 0.0,
        }
    };
    let signs: Vec<f64> = (0..n).map(outlier_sign).collect();
    let mut cleaned = values.to_vec();
    let outliers = signs.iter().filter(|sign| **sign != 0.0).count();
    if are_too_many(outliers, n) {
        return cleaned;
    }
    let mut start = 0;
    for run in signs.chunk_by(|a, b| a == b) {
        let end = start + run.len();
        let is_normal = |i: Option<usize>| i.and_then(|i| signs.get(i)).is_none_or(|s| *s == 0.0);
        let is_isolated = is_normal(start.checked_sub(1)) && is_normal(Some(end));
        if run[0] != 0.0 && run.len() <= 3 && is_isolated {
            let from = start.saturating_sub(NEIGHBOURS);
            let to = (end + NEIGHBOURS).min(n);
            let replaced = (start..end).map(|i| {
                let others = (from..to).filter(|j| !(start..end).contains(j));
                median_of(x, values, i, slope, others)
            });
            let replaced: Vec<f64> = replaced.collect();
            cleaned[start..end].copy_from_slice(&replaced);
        }
        start = end;
    }
    cleaned
}

/// True if so many of the samples are outliers or in bursts that they are a part of the series, such as levels that
/// alternate, or teeth.
pub fn are_too_many(outliers: usize, samples: usize) -> bool {
    3 * outliers > samples
}

/// Samples on each side of a sample that predict it.
const NEIGHBOURS: usize = 4;

/// The value at `x[i]` that these neighbours predict; `None` without neighbours.
fn prediction(
    x: &[f64],
    values: &[f64],
    i: usize,
    slope: f64,
    neighbours: std::ops::Range<usize>,
) -> Option<f64> {
    (!neighbours.is_empty()).then(|| median_of(x, values, i, slope, neighbours))
}

/// The median of the neighbours, each moved along the slope to `x[i]`.
fn median_of(
    x: &[f64],
    values: &[f64],
    i: usize,
    slope: f64,
    neighbours: impl Iterator<Item = usize>,
) -> f64 {
    let moved = neighbours.map(|j| values[j] + slope * (x[i] - x[j]));
    median_mut(&mut moved.collect::<Vec<_>>())
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
    fn isolated_spikes_are_replaced_and_steps_teeth_and_alternating_levels_stay() {
        let mut series = vec![5.0; 20];
        series[8] = 500.0;
        series[14..].iter_mut().for_each(|v| *v = 50.0);
        series[19] = 900.0;
        let x: Vec<f64> = (0..40).map(f64::from).collect();
        let cleaned = without_outliers(&x[..20], &series, 1.0);
        assert_eq!([8, 13, 14, 19].map(|i| cleaned[i]), [5.0, 5.0, 50.0, 50.0]);
        let teeth: Vec<f64> = (0..40).map(|i| f64::from(i % 5) * 10.0).collect();
        assert_eq!(without_outliers(&x, &teeth, 1.0)[5..35], teeth[5..35]);
        let levels: Vec<f64> = (0..40).map(|i| f64::from(i / 3 % 2) * 50.0).collect();
        assert_eq!(without_outliers(&x, &levels, 1.0), levels);
    }
}
