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

/// A fall that is so many times the next one is no tooth's.
const SINGLE_FALL: f64 = 8.0;

pub struct Teeth {
    /// The samples as the teeth leave them, without their level.
    pub rest: Vec<f64>,
    /// The time since the last fall, the same growing with x, for teeth that become steeper, and 1 in the first tooth, whose
    /// begin is not known.
    pub shapes: Vec<Vec<f64>>,
    /// The share of the squares that the rise since the last fall leaves.
    left: f64,
}

impl Teeth {
    /// The teeth that explain the series best; `None` if it has none. Tries each clear gap between large and small falls.
    pub fn of(x: &[f64], y: &[f64], resolution: f64) -> Option<Teeth> {
        if y.len() < MIN_SAMPLES {
            return None;
        }
        let mut falls: Vec<f64> = y.windows(2).map(|w| w[0] - w[1]).collect();
        falls.sort_unstable_by(|a, b| b.total_cmp(a));
        if SINGLE_FALL * falls[1] < falls[0] {
            return None;
        }
        let limit = |count: usize| {
            let (smallest, next) = (falls[count - 1], falls[count].max(resolution));
            (smallest > 1.5 * next).then_some((smallest + next) / 2.0)
        };
        let limits = (2..=y.len() / 2).filter_map(limit);
        let best = limits.filter_map(|limit| Teeth::that_fall_by(limit, x, y));
        let best = best.min_by(|a, b| a.left.total_cmp(&b.left));
        best.filter(|teeth| teeth.left < MAX_LEFT)
    }

    /// Teeth that end with falls of at least this height.
    fn that_fall_by(limit: f64, x: &[f64], y: &[f64]) -> Option<Teeth> {
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
        let shapes = vec![ages, faster, in_first.collect()];
        let mut others = Known::constant(x.len());
        for shape in [x, &shapes[1], &shapes[2]] {
            others.add(shape);
        }
        let around = others.left_of(y);
        let (rate, _) = others.share_of(&shapes[0], &around);
        let starts = || (0..y.len()).filter(is_start);
        let fallen: f64 = starts().map(|i| y[i - 1] - y[i]).sum();
        let risen: f64 = starts().map(|i| rate * shapes[0][i - 1]).sum();
        // The falls of noise on a curve take back a small part of the rise.
        if !(risen > 0.0 && risen < MAX_RISE_PER_FALL * fallen) {
            return None;
        }
        let mut all = Known::constant(x.len());
        for shape in &shapes {
            all.add(shape);
        }
        let (slope, _) = all.share_of(x, &all.left_of(y));
        all.add(x);
        let left = all.left_of(y);
        let rest = left.iter().zip(x).map(|(left, x)| left + slope * x);
        Some(Teeth {
            rest: rest.collect(),
            left: squares(&left) / squares(&around),
            shapes,
        })
    }
}

fn squares(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum()
}
