//! Removes the teeth of a sawtooth: memory that rises each round and falls when a collector runs.
//!
//! The lows of such a series show its growth. To use all samples and not only the lows, each sample
//! is lowered by the rise per round times the rounds since the last fall.

use super::line::Known;
use super::robust::{deviation, median};

/// A shorter series shows too few teeth.
const MIN_SAMPLES: usize = 12;
/// A fall is part of the teeth if it is so many deviations of the other steps.
const MIN_FALL: f64 = 4.0;
/// How far a fall may differ from the rise before it, as a share of the fall.
const MAX_MISMATCH: f64 = 0.35;
/// The share of the falls that must match the rise before them.
const MIN_MATCHES: f64 = 0.75;

/// The samples of a swinging series without the rise since the last fall.
pub struct Lows {
    pub y: Vec<f64>,
    /// The time since the last fall, the same growing with x, for teeth that become steeper, and 1 in the first tooth, whose
    /// begin is not known.
    pub shapes: Vec<Vec<f64>>,
}

/// The lows of a series with teeth; `None` if it has none.
pub fn lows(x: &[f64], y: &[f64], resolution: f64) -> Option<Lows> {
    if y.len() < MIN_SAMPLES {
        return None;
    }
    let steps: Vec<f64> = y.windows(2).map(|w| w[1] - w[0]).collect();
    let mut falls: Vec<f64> = steps
        .iter()
        .map(|step| -step)
        .filter(|fall| *fall > 0.0)
        .collect();
    falls.sort_unstable_by(|a, b| b.total_cmp(a));
    // Try each clear gap between large and small falls, beginning with the most falls.
    let limit = |count: usize| {
        let next = falls.get(count).copied().unwrap_or(0.0).max(resolution);
        let smallest = falls[count - 1];
        (smallest > 1.5 * next).then_some((smallest + next) / 2.0)
    };
    let counts = (2..=falls.len().min(y.len() / 2 + 1)).rev();
    counts
        .filter_map(limit)
        .find_map(|limit| lows_between_falls(x, y, &steps, limit, resolution))
}

/// The lows, if the teeth end with falls of at least `limit` and rise evenly before.
fn lows_between_falls(
    x: &[f64],
    y: &[f64],
    steps: &[f64],
    limit: f64,
    resolution: f64,
) -> Option<Lows> {
    let is_fall = |i: &usize| -steps[*i] >= limit;
    let rises: Vec<f64> = (0..steps.len())
        .filter(|i| !is_fall(i))
        .map(|i| steps[i] / (x[i + 1] - x[i]))
        .collect();
    let (rise, noise) = (median(&rises), deviation(&rises).max(resolution));
    let starts: Vec<usize> = (0..steps.len()).filter(is_fall).map(|i| i + 1).collect();
    if rise <= 0.0 || limit < MIN_FALL * noise {
        return None;
    }
    // Each whole tooth must rise by the same amount per round.
    let whole = starts.windows(2).map(|pair| (pair[0], pair[1] - 1));
    let whole: Vec<(usize, usize)> = whole.filter(|(from, to)| to > from).collect();
    let mismatch = |(from, to): (usize, usize)| (y[to] - y[from] - rise * (x[to] - x[from])).abs();
    let matches = whole.iter().filter(|&&(from, to)| {
        mismatch((from, to)) <= MAX_MISMATCH * rise * (x[to] - x[from]) + 3.0 * noise
    });
    if whole.is_empty() || (matches.count() as f64) < MIN_MATCHES * whole.len() as f64 {
        return None;
    }
    Lows::between(x, y, starts)
}

impl Lows {
    /// The lows of teeth that begin at these samples.
    fn between(x: &[f64], y: &[f64], starts: Vec<usize>) -> Option<Lows> {
        let first = *starts.first()?;
        let pairs = starts.windows(2);
        let growth = pairs.map(|pair| (y[pair[1]] - y[pair[0]]) / (x[pair[1]] - x[pair[0]]));
        let growth = median(&growth.collect::<Vec<_>>());
        let is_start = |i: &usize| starts.binary_search(i).is_ok();
        let rises = (1..y.len()).filter(|i| !is_start(i));
        let rises = rises.map(|i| (y[i] - y[i - 1]) / (x[i] - x[i - 1]));
        let rise = median(&rises.collect::<Vec<_>>());
        // The first tooth may have begun before the first sample.
        let age_of = |i: usize| {
            let low = y[first] - growth * (x[first] - x[i]);
            (y[i] - low) / (rise - growth) - (x[i] - x[0])
        };
        let age = median(&(0..first).map(age_of).collect::<Vec<_>>()).max(0.0);
        let mut start = x[0] - if age.is_finite() { age } else { 0.0 };
        let age_at = |i: usize| {
            if is_start(&i) {
                start = x[i];
            }
            x[i] - start
        };
        let ages: Vec<f64> = (0..y.len()).map(age_at).collect();
        // The rise since the last fall. The line beside it takes the growth of the lows.
        let mut line = Known::constant(x.len());
        line.add(x);
        let (rise, _) = line.share_of(&ages, &line.left_of(y));
        if !rise.is_finite() {
            return None;
        }
        let in_first = (0..y.len()).map(|i| f64::from(u8::from(i < first)));
        let in_first = in_first.collect();
        let middle = x[x.len() / 2];
        let faster = ages.iter().zip(x).map(|(age, x)| age * (x - middle));
        let faster = faster.collect();
        Some(Lows {
            y: y.iter().zip(&ages).map(|(y, age)| y - rise * age).collect(),
            shapes: vec![ages, faster, in_first],
        })
    }
}
