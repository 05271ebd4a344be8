//! Replaces bursts: short segments between two that continue each other.

use super::cleaned::Cleaned;
use super::robust::are_too_many;
use super::segments::{segments, Segment};

/// The segments, after bursts are replaced: short segments between two that continue each other.
pub fn segments_without_bursts(series: &mut Cleaned, material: f64) -> Vec<Segment> {
    let with_bursts = segments(&series.x, &series.y, &series.noise);
    let (original, mut found) = (series.clone(), with_bursts.clone());
    while let Some((before, after)) = burst(series, &found, material) {
        for i in before.to..after.from {
            let x = series.x[i];
            series.y[i] = (before.value_at(x) + after.value_at(x)) / 2.0;
            series.is_replaced[i] = true;
        }
        found = segments(&series.x, &series.y, &series.noise);
    }
    let replaced = series.is_replaced.iter().filter(|is| **is).count();
    if are_too_many(replaced, series.y.len()) {
        *series = original;
        return with_bursts;
    }
    found
}

/// The segments around the first burst.
fn burst(series: &Cleaned, found: &[Segment], material: f64) -> Option<(Segment, Segment)> {
    /// A burst may have several levels.
    const MAX_LEVELS: usize = 4;
    let longest = usize::max(6, series.y.len() / 10);
    let min_height = f64::max(material, 4.0 * series.noise.deviation);
    let pairs = (0..found.len()).flat_map(|i| (i + 2..=i + 1 + MAX_LEVELS).map(move |j| (i, j)));
    let is_burst = |&(i, j): &(usize, usize)| {
        let Some(after) = found.get(j) else {
            return false;
        };
        let (before, levels) = (&found[i], &found[i + 1..j]);
        let heights = levels.iter().map(|level| {
            let (left, right) = (before.value_at(level.mean_x), after.value_at(level.mean_x));
            let edges = [
                before.value_at(series.x[before.to - 1]),
                after.value_at(series.x[after.from]),
                left,
                right,
            ];
            let above = edges.map(|edge| level.mean_y - edge);
            let lowest = above.iter().copied().fold(f64::INFINITY, f64::min);
            let highest = above.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let height = if lowest > 0.0 {
                lowest
            } else {
                (-highest).max(0.0)
            };
            (height, (left - right).abs())
        });
        after.from - before.to <= longest
            && heights
                .clone()
                .all(|(height, apart)| height > min_height && apart < height)
    };
    let (i, j) = pairs.into_iter().find(is_burst)?;
    Some((found[i], found[j]))
}
