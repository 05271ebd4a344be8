//! The one estimator: a line through samples that depend on each other, and the bounds of its slope.
//!
//! A size is a level, a growth per round, and a rest: the teeth of a collector, a cache that fills, a
//! heap that breaks up. Least squares takes every sample of such a rest for new knowledge and is far too
//! sure. Here each sample's rest may repeat a share of the one before it, the largest share that the
//! samples allow, and the line is fitted to what is new in each (Prais and Winsten 1954). A rest without
//! memory gives least squares; one that never forgets gives the mean of the steps.
//!
//! And growth is a rate, not an event: a bound must also hold when the largest steps towards it are
//! taken away. So one cache that was filled is no growth, however sure the line is.

/// Steps that may be accidents: the end of a warm-up, a cache, a second job.
const ACCIDENTS: usize = 3;
/// Sizes are counted in pages and larger pieces.
const RESOLUTION_BYTES: f64 = 64.0 * 1024.0;

/// Growth of y per unit of x, and the bounds of its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Slope {
    pub per_x: f64,
    pub low: f64,
    pub high: f64,
}

/// A fitted line: the slope is the sum of the samples by their weights.
#[derive(Clone, Debug)]
pub struct Line {
    pub slope: Slope,
    /// Half the interval that its standard error makes, accidents apart.
    pub error: f64,
    weights: Vec<f64>,
}

impl Line {
    /// `x` ascends strictly; fewer than four samples have a slope, but no bounds.
    pub fn through(x: &[f64], y: &[f64]) -> Line {
        let plain = weights(x, 0.0);
        let rest = rest(x, y, dot(&plain, y));
        let memory = memory(&rest);
        let weights = weights(x, memory);
        let per_x = dot(&weights, y);
        let error = t_975(y.len() as f64 - 3.0) * deviation(x, y, per_x, memory);
        let error = error + RESOLUTION_BYTES / (x[x.len() - 1] - x[0]);
        let (up, down) = accidents(y, &weights);
        let (low, high) = (per_x - error.max(up), per_x + error.max(down));
        let slope = Slope { per_x, low, high };
        Line {
            slope,
            error,
            weights,
        }
    }

    /// The slope of another quantity of the same samples.
    pub fn slope_of(&self, y: &[f64]) -> f64 {
        dot(&self.weights, y)
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// What the samples lie above the line of this slope through their middle.
fn rest(x: &[f64], y: &[f64], per_x: f64) -> Vec<f64> {
    let (middle_x, middle_y) = (mean(x), mean(y));
    let above = |(x, y): (&f64, &f64)| y - middle_y - per_x * (x - middle_x);
    x.iter().zip(y).map(above).collect()
}

/// The share of a rest that the next one repeats: two standard errors above the estimate, after what
/// the fit of a line hides of it (Marriott and Pope 1954).
fn memory(rest: &[f64]) -> f64 {
    let n = rest.len() as f64;
    let squares = dot(rest, rest);
    let seen = if squares > 0.0 {
        dot(rest, &rest[1..]) / squares
    } else {
        0.0
    };
    let unhidden = (seen + 2.0 / n) / f64::max(1.0 - 4.0 / n, 0.2);
    let error = ((1.0 - unhidden * unhidden).max(0.0) / n).sqrt();
    (unhidden + 2.0 * error).clamp(0.0, 0.99)
}

/// What is new in each sample, given the one before.
fn news(values: &[f64], memory: f64) -> Vec<f64> {
    let first = values[0] * (1.0 - memory * memory).sqrt();
    let later = values.windows(2).map(|w| w[1] - memory * w[0]);
    std::iter::once(first).chain(later).collect()
}

/// What is new in each 1 of a level, and in each place of the axis, counted from its middle.
fn axes(x: &[f64], memory: f64) -> (Vec<f64>, Vec<f64>) {
    let middle = mean(x);
    let centred: Vec<f64> = x.iter().map(|x| x - middle).collect();
    (news(&vec![1.0; x.len()], memory), news(&centred, memory))
}

/// The weights of the samples in the slope of the line that fits their news best.
fn weights(x: &[f64], memory: f64) -> Vec<f64> {
    let (ones, x) = axes(x, memory);
    let (aa, ax, xx) = (dot(&ones, &ones), dot(&ones, &x), dot(&x, &x));
    let weight = |(a, x): (&f64, &f64)| (aa * x - ax * a) / (aa * xx - ax * ax);
    let of_news: Vec<f64> = ones.iter().zip(&x).map(weight).collect();
    // From the news back to the samples.
    let own = |i: usize| of_news[i] * if i == 0 { news(&[1.0], memory)[0] } else { 1.0 };
    let next = |i: usize| of_news.get(i + 1).unwrap_or(&0.0) * memory;
    (0..of_news.len()).map(|i| own(i) - next(i)).collect()
}

/// The standard error of the slope.
fn deviation(x: &[f64], y: &[f64], per_x: f64, memory: f64) -> f64 {
    let mut left = news(&rest(x, y, per_x), memory);
    let (ones, x) = axes(x, memory);
    let (aa, ax) = (dot(&ones, &ones), dot(&ones, &x));
    let offset = dot(&ones, &left) / aa;
    for (left, one) in left.iter_mut().zip(&ones) {
        *left -= offset * one;
    }
    let spread = dot(&x, &x) - ax * ax / aa;
    (dot(&left, &left) / f64::max(x.len() as f64 - 2.0, 1.0) / spread).sqrt()
}

/// What the largest steps up add to the slope, and what the largest steps down take from it.
fn accidents(y: &[f64], weights: &[f64]) -> (f64, f64) {
    // A step lifts all samples from there on.
    let mut lifts = vec![0.0; weights.len()];
    for i in (0..weights.len()).rev() {
        lifts[i] = weights[i] + lifts.get(i + 1).unwrap_or(&0.0);
    }
    let steps = y.windows(2).zip(&lifts[1..]);
    let mut parts: Vec<f64> = steps.map(|(y, lift)| (y[1] - y[0]) * lift).collect();
    parts.sort_unstable_by(f64::total_cmp);
    let down = parts.iter().take(ACCIDENTS).map(|part| part.min(0.0));
    let up = parts.iter().rev().take(ACCIDENTS).map(|part| part.max(0.0));
    (up.sum(), -down.sum::<f64>())
}

/// The 97.5 % quantile of Student's t (Hill's expansion), good to a hundredth from 3 degrees on.
fn t_975(degrees: f64) -> f64 {
    const Z: f64 = 1.959_964;
    let v = degrees.max(1.0);
    let first = (Z.powi(3) + Z) / (4.0 * v);
    let second = (5.0 * Z.powi(5) + 16.0 * Z.powi(3) + 3.0 * Z) / (96.0 * v * v);
    Z + first + second
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::units::MB;

    /// Through 20 rounds of these sizes in MB.
    fn line(y: impl Fn(f64) -> f64) -> Line {
        let x: Vec<f64> = (0..20).map(f64::from).collect();
        let y: Vec<f64> = x.iter().map(|x| y(*x) * MB).collect();
        Line::through(&x, &y)
    }

    fn slope(y: impl Fn(f64) -> f64) -> Slope {
        let Slope { per_x, low, high } = line(y).slope;
        assert!(low <= per_x && per_x <= high, "{low} {per_x} {high}");
        let [per_x, low, high] = [per_x, low, high].map(|bytes| bytes / MB);
        Slope { per_x, low, high }
    }

    #[test]
    fn a_line_gives_its_slope_and_stays_growth_without_its_largest_steps() {
        let found = slope(|x| 100.0 + 3.0 * x);
        assert!((found.per_x - 3.0).abs() < 1e-6);
        assert!(found.low > 2.0 && found.high < 3.1, "{found:?}");
    }

    #[test]
    fn one_step_is_an_event_and_no_rate() {
        let found = slope(|x| if x < 10.0 { 100.0 } else { 200.0 });
        assert!(found.per_x > 3.0 && found.low <= 0.0, "{found:?}");
    }

    #[test]
    fn equal_samples_have_no_slope_and_the_bounds_of_what_can_be_counted() {
        let found = slope(|_| 100.0);
        assert_eq!(found.per_x.abs(), 0.0);
        assert!(found.low > -0.01 && found.high < 0.01, "{found:?}");
    }

    #[test]
    fn a_rest_that_forgets_slowly_widens_the_bounds() {
        let fast = line(|x| (x * 7.0) % 5.0).error;
        let slow = line(|x| (x * 0.8) % 5.0).error;
        assert!(slow > 1.5 * fast, "{slow} {fast}");
    }

    #[test]
    fn the_slope_of_a_part_is_its_share_of_the_whole() {
        let part = |x: f64| 2.0 * x + (x * 7.0) % 5.0;
        let line = line(|x| part(x) + 3.0 * x);
        let parts: Vec<f64> = (0..20).map(|x| part(f64::from(x)) * MB).collect();
        let left = line.slope.per_x - line.slope_of(&parts);
        assert!((left / MB - 3.0).abs() < 1e-6, "{left}");
    }
}
