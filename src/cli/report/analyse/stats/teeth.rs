//! Finds the teeth of a sawtooth: memory that rises each round and falls when a collector runs.
//!
//! Their shapes are fitted beside the growth, so that all samples show it, and not only the lows.

use super::line::Known;

/// A shorter series shows too few teeth.
const MIN_SAMPLES: usize = 12;
/// The rise since the last fall leaves at most this share of the squares.
const MAX_LEFT: f64 = 0.25;
/// A fall takes back the rise since the last one; the slope of the process adds to both.
const MAX_RISE_PER_FALL: f64 = 2.0;

/// The time since the last fall, the same growing with x, for teeth that become steeper, and 1 in the first tooth, whose
/// begin is not known.
type Shapes = Vec<Vec<f64>>;

/// The teeth that explain the series best; `None` if it has none. Tries each clear gap between large and small falls.
pub fn teeth(x: &[f64], y: &[f64], resolution: f64) -> Option<Shapes> {
    if y.len() < MIN_SAMPLES {
        return None;
    }
    let mut falls: Vec<f64> = y.windows(2).map(|w| w[0] - w[1]).collect();
    falls.sort_unstable_by(|a, b| b.total_cmp(a));
    let limit = |count: usize| {
        let (smallest, next) = (falls[count - 1], falls[count].max(resolution));
        (smallest > 1.5 * next).then_some((smallest + next) / 2.0)
    };
    let limits = (2..=y.len() / 2).filter_map(limit);
    let found = limits.filter_map(|limit| that_fall_by(limit, x, y));
    let (left, shapes) = found.min_by(|(a, _), (b, _)| a.total_cmp(b))?;
    (left < MAX_LEFT).then_some(shapes)
}

/// Teeth that end with falls of at least this height, and the share of the squares that the rise since the last fall leaves.
fn that_fall_by(limit: f64, x: &[f64], y: &[f64]) -> Option<(f64, Shapes)> {
    let is_start = |i: &usize| *i > 0 && y[i - 1] - y[*i] >= limit;
    let first = (0..y.len()).find(is_start)?;
    let mut start = x[0];
    let age_at = |i: usize| {
        if is_start(&i) {
            start = x[i];
        }
        x[i] - start
    };
    let ages: Vec<f64> = (0..y.len()).map(age_at).collect();
    let middle = x[x.len() / 2];
    let faster = ages.iter().zip(x).map(|(age, x)| age * (x - middle));
    let faster: Vec<f64> = faster.collect();
    let in_first = (0..y.len()).map(|i| f64::from(u8::from(i < first)));
    let in_first: Vec<f64> = in_first.collect();
    let mut known = Known::constant(x.len());
    for shape in [x, &faster, &in_first] {
        known.add(shape);
    }
    let without_ages = known.left_of(y);
    let (rate, _) = known.share_of(&ages, &without_ages);
    let starts = || (0..y.len()).filter(is_start);
    let fallen: f64 = starts().map(|i| y[i - 1] - y[i]).sum();
    let risen: f64 = starts().map(|i| rate * ages[i - 1]).sum();
    // The falls of noise on a curve take back a small part of the rise.
    if !(risen > 0.0 && risen < MAX_RISE_PER_FALL * fallen) {
        return None;
    }
    known.add(&ages);
    let left = squares(&known.left_of(y)) / squares(&without_ages);
    Some((left, vec![ages, faster, in_first]))
}

fn squares(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum()
}
