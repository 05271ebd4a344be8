//! The growth of memory below garbage: a line through the lows of full collections.
//!
//! A collection leaves an unknown share of the garbage that it finds, and not always the same. With many
//! collections the lows show both. With few they do not, so typical values have the weight of some
//! observations more.

use super::line::{t_975, Slope};
use super::robust::{deviation, median};

/// The memory around a full collection.
#[derive(Clone, Copy, Debug)]
pub struct Collected {
    /// The last sample before it, and the first after it: position and memory.
    pub before: (f64, f64),
    pub after: (f64, f64),
    pub released: f64,
}

/// Fewer lows show no growth.
const MIN_LOWS: usize = 3;
/// A collection that releases less than this share of the largest release may leave much.
const EFFECTIVE_SHARE: f64 = 0.5;
/// The share of the released bytes that a collection typically leaves, and its deviation.
const LEFT: f64 = 0.14;
const LEFT_DEVIATION: f64 = 0.1;
/// The typical deviation of that share between the collections of one process has the weight of so many
/// observations. It is a part of the unevenness with which the rounds make garbage, within these bounds.
const UNEVEN_WEIGHT: f64 = 16.0;
const UNEVEN_PART: f64 = 0.2;
const UNEVEN_BOUNDS: (f64, f64) = (0.003, 0.03);
/// Noise of the memory, as a share of a release.
const NOISE_SHARE: f64 = 0.2;

/// The growth per x of the lows with its 95 % interval. `None` for too few lows, or if they cover less than
/// half of the range of x. `made` is the new memory of each round.
pub fn growth_of_lows(collections: &[Collected], range: f64, made: &[f64]) -> Option<Slope> {
    let largest = collections
        .iter()
        .map(|one| one.released)
        .fold(0.0, f64::max);
    let effective = |one: &&Collected| one.released >= EFFECTIVE_SHARE * largest && largest > 0.0;
    let effective: Vec<&Collected> = collections.iter().filter(effective).collect();
    let ends = effective.first().zip(effective.last())?;
    if effective.len() < MIN_LOWS || ends.1.before.0 - ends.0.before.0 < range / 2.0 {
        return None;
    }
    let uneven = UNEVEN_PART * deviation(made) / median(made);
    let uneven = match uneven >= 0.0 {
        true => uneven.clamp(UNEVEN_BOUNDS.0, UNEVEN_BOUNDS.1),
        false => UNEVEN_BOUNDS.1,
    };
    // Garbage is made before and after a collection. The better fit shows which sample is the low.
    let after = effective.iter().map(|one| (one.after.0, one.after.1));
    let before = effective
        .iter()
        .map(|one| (one.before.0, one.before.1 - one.released));
    let released: Vec<f64> = effective.iter().map(|one| one.released).collect();
    let fits =
        [after.collect::<Vec<_>>(), before.collect()].map(|lows| Fit::of(&lows, &released, uneven));
    let best = fits
        .into_iter()
        .min_by(|a, b| a.residual.total_cmp(&b.residual))?;
    Some(best.slope)
}

struct Fit {
    slope: Slope,
    /// The sum of squares, as shares of the released bytes.
    residual: f64,
}

impl Fit {
    /// A line and a share of the released bytes, fitted together by weighted least squares.
    fn of(lows: &[(f64, f64)], released: &[f64], uneven: f64) -> Fit {
        let noise = NOISE_SHARE * median(released);
        let weights: Vec<f64> = released
            .iter()
            .map(|r| 1.0 / (r * r + noise * noise))
            .collect();
        let total: f64 = weights.iter().sum();
        let centred = |values: Vec<f64>| -> Vec<f64> {
            let mean = values.iter().zip(&weights).map(|(v, w)| v * w).sum::<f64>() / total;
            values.iter().map(|v| v - mean).collect()
        };
        let product = |a: &[f64], b: &[f64]| -> f64 {
            let pairs = a.iter().zip(b).zip(&weights);
            pairs.map(|((a, b), w)| a * b * w).sum()
        };
        let x = centred(lows.iter().map(|low| low.0).collect());
        let y = centred(lows.iter().map(|low| low.1).collect());
        let r = centred(released.to_vec());
        let prior = (uneven / LEFT_DEVIATION).powi(2);
        let (xx, xr) = (product(&x, &x), product(&x, &r));
        let rr = product(&r, &r) + prior;
        let ry = product(&r, &y) + prior * LEFT;
        let left = (xx * ry - xr * product(&x, &y)) / (xx * rr - xr * xr);
        let left = left.clamp(0.0, 0.5);
        let rest: Vec<f64> = y.iter().zip(&r).map(|(y, r)| y - left * r).collect();
        let per_x = product(&x, &rest) / xx;
        let residual = (product(&rest, &rest) - per_x * per_x * xx).max(0.0);
        let degrees = UNEVEN_WEIGHT + lows.len() as f64 - 2.0;
        let variance = (UNEVEN_WEIGHT * uneven.powi(2) + residual) / degrees;
        let half_width = t_975(degrees) * (variance / (xx - xr * xr / rr)).sqrt();
        Fit {
            slope: Slope {
                per_x,
                low: per_x - half_width,
                high: per_x + half_width,
            },
            residual,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds that make unequal garbage.
    const MADE: [f64; 6] = [9.0, 11.0, 10.0, 10.5, 8.5, 12.0];

    /// Collections every ten x that leave a fifth of what they release, besides a growth per x.
    fn collections(count: usize, growth: f64, released: impl Fn(usize) -> f64) -> Vec<Collected> {
        let one = |i: usize| {
            let (x, released) = (10.0 * (i + 1) as f64, released(i));
            let low = 1000.0 + growth * x + 0.2 * released;
            Collected {
                before: (x - 1.0, low + released - growth),
                after: (x, low + 5.0 * (i % 3) as f64),
                released,
            }
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn the_growth_below_uneven_garbage_is_found_and_its_interval_shrinks_with_more_collections() {
        let mut width = f64::INFINITY;
        for count in [3, 5, 12] {
            let all = collections(count, 2.0, |i| 100.0 + 20.0 * (i % 2) as f64);
            let found = growth_of_lows(&all, 10.0 * count as f64, &MADE).unwrap();
            assert!(found.low < 2.0 && 2.0 < found.high, "{count}: {found:?}");
            assert!(found.high - found.low < width, "{count}: {found:?}");
            width = found.high - found.low;
        }
        assert!(width < 0.2, "{width}");
    }

    #[test]
    fn collections_that_release_little_are_no_lows() {
        let with_small = |i: usize| if i.is_multiple_of(2) { 100.0 } else { 10.0 };
        let mut all = collections(9, 0.0, with_small);
        for small in all.iter_mut().skip(1).step_by(2) {
            small.before.1 += 80.0;
            small.after.1 += 80.0;
        }
        let found = growth_of_lows(&all, 90.0, &MADE).unwrap();
        assert!(found.low < 0.0 && found.high < 0.5, "{found:?}");
    }

    #[test]
    fn few_collections_or_those_of_a_part_of_the_rounds_show_no_growth() {
        let all = collections(2, 2.0, |_| 100.0);
        assert_eq!(growth_of_lows(&all, 20.0, &MADE), None);
        let all = collections(5, 2.0, |_| 100.0);
        assert_eq!(growth_of_lows(&all, 100.0, &MADE), None);
        assert_eq!(growth_of_lows(&[], 100.0, &MADE), None);
    }
}
