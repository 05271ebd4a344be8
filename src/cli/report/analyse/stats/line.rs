//! Fits a line to autocorrelated samples and bounds its slope, and a mean of such samples.
//!
//! Residuals of memory sizes (a collector's teeth, a filling cache, fragmentation) are
//! autocorrelated, so the usual interval of least squares would be wrong. A line is a slow change: its error depends on the
//! slow changes of the residuals alone, and these are measured (Lazarus and others 2018).

use serde::Serialize;
use serde_json::{json, Value};

/// Allocators and the kernel change sizes in pieces of up to this size.
const RESOLUTION_BYTES: f64 = 64.0 * 1024.0;

/// Teeth, steps and the last regime are chosen by the same samples, which makes residuals too small. So does the trend of a
/// mean.
const CHOICE: f64 = 1.2;

/// The share of x that a shape may explain.
const MAX_RESEMBLANCE: f64 = 0.9;

/// The factors of the models of values that wander. The last one makes a random walk.
const FACTORS: [f64; 6] = [0.5, 0.7, 0.8, 0.9, 0.95, 0.999];

/// Growth of y per unit of x, or a mean, with the bounds of its 95 % interval; NaN for a mean of fewer than three samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Estimate {
    pub value: f64,
    #[serde(rename = "low_95")]
    pub low: f64,
    #[serde(rename = "high_95")]
    pub high: f64,
}

impl Estimate {
    pub fn around(value: f64, half_width: f64) -> Estimate {
        Estimate {
            value,
            low: value - half_width,
            high: value + half_width,
        }
    }

    /// Changes the slope and its bounds alike.
    pub fn map(self, change: impl Fn(f64) -> f64) -> Estimate {
        let Estimate { value, low, high } = self;
        let [value, low, high] = [value, low, high].map(change);
        Estimate { value, low, high }
    }

    /// The JSON of a rate with this name.
    pub fn json(&self, name: &str) -> Value {
        json!({ name: self.value, "low_95": self.low, "high_95": self.high })
    }

    /// The slope of the opposite change.
    pub fn negated(self) -> Estimate {
        let (low, high) = (self.high, self.low);
        Estimate { low, high, ..self }.map(|rate| -rate)
    }
}

/// A fitted line. The slope is the weighted sum of the samples.
#[derive(Clone, Debug)]
pub struct Line {
    pub slope: Estimate,
    weights: Vec<f64>,
    /// The shapes that are fitted together with the slope.
    known: Known,
}

impl Line {
    /// `x` ascends strictly. With fewer than four samples the bounds mean nothing.
    pub fn through(x: &[f64], y: &[f64]) -> Line {
        Line::beside(&[], x, y)
    }

    /// The line, if y also contains unknown multiples of these shapes, such as a tooth. They are
    /// fitted together with the line, so that the interval accounts for them.
    pub fn beside(shapes: &[Vec<f64>], x: &[f64], y: &[f64]) -> Line {
        let mut known = Known::constant(x.len());
        let (constant, alone) = (known.clone(), known.left_of(x));
        for shape in shapes {
            // A shape that x resembles too much cannot be told from the line.
            let shared = explained(&constant.left_of(shape), &alone);
            if shared < MAX_RESEMBLANCE * dot(&alone, &alone) {
                known.add(shape);
            }
        }
        let own = known.left_of(x);
        let squares = dot(&own, &own);
        let weights: Vec<f64> = own.iter().map(|own| own / squares).collect();
        let value = slope_of(&weights, y);
        known.add(x);
        let (deviation, degrees) = known.slow_deviation(y);
        let half_width = CHOICE * t_975(degrees) * deviation / squares.sqrt()
            + RESOLUTION_BYTES / (x[x.len() - 1] - x[0]);
        Line {
            slope: Estimate::around(value, half_width),
            weights,
            known,
        }
    }

    /// The slope, with a wider interval if the samples wander.
    pub fn slope_if_wandering(&self, y: &[f64]) -> Estimate {
        let half_width = self.slope.value - self.slope.low;
        let error = self.known.wandering(&self.weights, y, &FACTORS);
        let widened = CHOICE * error * dot(&self.weights, &self.weights).sqrt();
        Estimate::around(self.slope.value, half_width.max(widened))
    }

    /// The distance of each sample from the line and its shapes.
    pub fn left_of(&self, y: &[f64]) -> Vec<f64> {
        self.known.left_of(y)
    }

    /// The slope of another quantity of the same samples.
    pub fn slope_of(&self, y: &[f64]) -> f64 {
        slope_of(&self.weights, y)
    }
}

/// The weights sum up to 0. Sizes are large compared with their changes, so digits would be lost.
fn slope_of(weights: &[f64], y: &[f64]) -> f64 {
    let pairs = weights.iter().zip(y);
    pairs.map(|(weight, value)| weight * (value - y[0])).sum()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Shapes that a fit knows, as orthogonal vectors.
#[derive(Clone, Debug)]
pub struct Known(Vec<Vec<f64>>);

impl Known {
    pub fn constant(samples: usize) -> Known {
        Known(vec![vec![1.0; samples]])
    }

    /// Adds a shape. Returns false if the others explain it.
    pub fn add(&mut self, shape: &[f64]) -> bool {
        let left = self.left_of(shape);
        let is_new = dot(&left, &left) > 1e-9 * dot(shape, shape);
        if is_new {
            self.0.push(left);
        }
        is_new
    }

    /// The part of the values that no shape explains.
    pub fn left_of(&self, values: &[f64]) -> Vec<f64> {
        // Sizes are large compared with their changes, so digits would be lost.
        let mut left: Vec<f64> = values.iter().map(|value| value - values[0]).collect();
        for shape in &self.0 {
            let share = dot(shape, &left) / dot(shape, shape);
            let pairs = left.iter_mut().zip(shape);
            pairs.for_each(|(left, shape)| *left -= share * shape);
        }
        left
    }

    /// How often values that the others do not explain contain this shape, and the squares that it explains.
    pub fn share_of(&self, shape: &[f64], left: &[f64]) -> (f64, f64) {
        let own = self.left_of(shape);
        (dot(&own, left) / dot(&own, &own), explained(&own, left))
    }

    /// The deviation of slow changes that no shape explains, and its degrees of freedom: projections on cosines. A season
    /// or teeth of several rounds do not count in it, a size that wanders does.
    pub fn slow_deviation(&self, values: &[f64]) -> (f64, f64) {
        const MIN_DEGREES: f64 = 3.0;
        let n = values.len() as f64;
        let (mut known, left) = (self.clone(), self.left_of(values));
        let wanted = (0.4 * n.powf(2.0 / 3.0)).round().max(MIN_DEGREES) as usize;
        let degrees = wanted.min(values.len().saturating_sub(self.0.len())).max(1);
        let (mut squares, mut found) = (0.0, 0);
        for frequency in 1..values.len() {
            if found == degrees {
                break;
            }
            if known.add(&cosine(frequency, values.len())) {
                squares += explained(&known.0[known.0.len() - 1], &left);
                found += 1;
            }
        }
        ((squares / degrees as f64).sqrt(), degrees as f64)
    }

    /// The bound of the error along a direction of values that wander. Most of their changes are slower than each cosine, so
    /// that a model extrapolates: each value is the one before times a factor, plus noise. Of the likely models, the one with
    /// the largest error counts. 0 if the cosines show no wandering.
    fn wandering(&self, direction: &[f64], values: &[f64], factors: &[f64]) -> f64 {
        /// With fewer values the models cannot be told apart.
        const MIN_VALUES: usize = 8;
        const MAX_COSINES: usize = 28;
        /// Noise that does not wander, as a multiple of the changes that do.
        const NOISES: [f64; 3] = [0.0, 0.3, 3.0];
        /// Differences between logarithms of likelihoods: of wandering and noise alone, and of models that are as likely.
        const LIKELIER: f64 = 0.5;
        const AS_LIKELY: f64 = 1.0;
        if values.len() < MIN_VALUES {
            return 0.0;
        }
        let left = self.left_of(values);
        let cosines = (1..).map(|frequency| self.left_of(&cosine(frequency, values.len())));
        let is_new = |shape: &Vec<f64>| 4.0 * dot(shape, shape) > values.len() as f64;
        let count = (values.len() / 2).min(MAX_COSINES);
        let cosines: Vec<Vec<f64>> = cosines.take(2 * count).filter(is_new).take(count).collect();
        let powers = cosines.iter().map(|shape| explained(shape, &left));
        let powers: Vec<f64> = powers.collect();
        let degrees = powers.len() as f64;
        // The likelihood, and the squares along the direction, if the expected powers have these proportions.
        let model = |expected: &[f64], along: f64| {
            let pairs = powers.iter().zip(expected);
            let scale = pairs.map(|(power, one)| power / one).sum::<f64>() / degrees;
            let logarithm = expected.iter().map(|one| one.ln()).sum::<f64>() + degrees * scale.ln();
            (-0.5 * logarithm, scale * along)
        };
        let of_factor = |factor: &f64| {
            let shapes = cosines.iter();
            let expected: Vec<f64> = shapes.map(|one| wandering_squares(one, *factor)).collect();
            let mean = expected.iter().sum::<f64>() / degrees;
            let along = wandering_squares(direction, *factor);
            NOISES.map(|noise| {
                let expected: Vec<f64> = expected.iter().map(|one| one + noise * mean).collect();
                model(&expected, along + noise * mean)
            })
        };
        let models: Vec<(f64, f64)> = factors.iter().flat_map(of_factor).collect();
        let (noise_alone, _) = model(&vec![1.0; powers.len()], 1.0);
        let best = models.iter().map(|(likelihood, _)| *likelihood);
        let best = best.fold(f64::NEG_INFINITY, f64::max);
        let is_likely = |one: f64| one >= best - AS_LIKELY && best > noise_alone + LIKELIER;
        let likely = models.iter().filter(|(one, _)| is_likely(*one));
        let squares = likely.map(|(_, squares)| *squares).fold(0.0, f64::max);
        t_975(degrees) * squares.sqrt()
    }
}

fn cosine(frequency: usize, samples: usize) -> Vec<f64> {
    let angle = std::f64::consts::PI * frequency as f64 / samples as f64;
    let values = (0..samples).map(|i| (angle * (i as f64 + 0.5)).cos());
    values.collect()
}

/// The squares along a shape of values each of which is the one before times a factor plus noise, up to a constant.
fn wandering_squares(shape: &[f64], factor: f64) -> f64 {
    let (mut sum, mut squares) = (0.0, 0.0);
    for value in shape {
        sum = factor * sum + value;
        squares += value * (2.0 * sum - value);
    }
    squares / dot(shape, shape)
}

/// The squares of the values that a shape explains.
fn explained(shape: &[f64], values: &[f64]) -> f64 {
    dot(shape, values).powi(2) / dot(shape, shape)
}

/// The 97.5 % quantile of Student's t, exact to 0.01 for whole degrees: by Hill's expansion, and from
/// the table where that converges too slowly.
pub fn t_975(degrees: f64) -> f64 {
    const Z: f64 = 1.959_964;
    const ONE_TO_FOUR: [f64; 4] = [12.706, 4.303, 3.182, 2.776];
    let v = degrees.max(1.0);
    if v < 4.0 {
        let (index, part) = (v as usize - 1, v.fract());
        let (below, above) = (ONE_TO_FOUR[index], ONE_TO_FOUR[index + 1]);
        return below + part * (above - below);
    }
    let first = (Z.powi(3) + Z) / (4.0 * v);
    let second = (5.0 * Z.powi(5) + 16.0 * Z.powi(3) + 3.0 * Z) / (96.0 * v * v);
    let third =
        (3.0 * Z.powi(7) + 19.0 * Z.powi(5) + 17.0 * Z.powi(3) - 15.0 * Z) / (384.0 * v.powi(3));
    Z + first + second + third
}

/// The mean of autocorrelated samples. A trend that they have is not noise.
pub fn mean_interval(values: &[f64], has_trend: bool) -> Estimate {
    let (n, mut known) = (values.len(), Known::constant(values.len()));
    if has_trend {
        known.add(&(0..n).map(|i| i as f64).collect::<Vec<_>>());
    }
    // A random walk has no mean.
    let wandering = known.wandering(&vec![1.0; n], values, &FACTORS[..FACTORS.len() - 1]);
    let half_width = match n {
        0..3 => f64::NAN,
        _ => half_width(&known, values).max(wandering / (n as f64).sqrt()),
    };
    Estimate::around(values.iter().sum::<f64>() / n.max(1) as f64, half_width)
}

/// Half of the 95 % interval of the mean of samples that do not wander. A trend is noise, too.
pub fn half_width_of_mean(values: &[f64]) -> f64 {
    half_width(&Known::constant(values.len()), values)
}

fn half_width(known: &Known, values: &[f64]) -> f64 {
    let (deviation, degrees) = known.slow_deviation(values);
    t_975(degrees) * deviation / (values.len() as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::Random;
    use crate::report::units::MB;

    /// The line through 20 rounds with these sizes in MB.
    fn line(y: impl Fn(f64) -> f64) -> Line {
        let x: Vec<f64> = (0..20).map(f64::from).collect();
        let y: Vec<f64> = x.iter().map(|x| y(*x) * MB).collect();
        Line::through(&x, &y)
    }

    fn slope(y: impl Fn(f64) -> f64) -> Estimate {
        let Estimate { value, low, high } = line(y).slope;
        assert!(low <= value && value <= high, "{low} {value} {high}");
        let [value, low, high] = [value, low, high].map(|bytes| bytes / MB);
        Estimate { value, low, high }
    }

    #[test]
    fn a_perfect_line_has_its_slope_and_a_positive_lower_bound() {
        let found = slope(|x| 100.0 + 3.0 * x);
        assert!((found.value - 3.0).abs() < 1e-6);
        assert!(found.low > 2.0 && found.high < 3.1, "{found:?}");
    }

    #[test]
    fn equal_samples_have_slope_zero_and_bounds_of_the_resolution() {
        let found = slope(|_| 100.0);
        assert_eq!(found.value.abs(), 0.0);
        assert!(found.low > -0.01 && found.high < 0.01, "{found:?}");
    }

    #[test]
    fn slow_changes_widen_the_interval_and_a_season_does_not() {
        let width = |line: Line| line.slope.high - line.slope.low;
        let [season, slow] = [2.5, 0.6].map(|angle| width(line(|x| 5.0 * (angle * x).sin())));
        assert!(slow > 4.0 * season, "{slow} {season}");
    }

    #[test]
    fn the_interval_of_a_random_walk_holds_its_slope_and_that_of_noise_is_wider_for_a_quarter_at_most(
    ) {
        let mut random = Random::new(1);
        let x: Vec<f64> = (0..60).map(f64::from).collect();
        let mut fit = |memory: f64| {
            let mut at = 0.0;
            let y = x.iter().map(|x| {
                at = memory * at + random.normal();
                (500.0 + 0.5 * x + at) * MB
            });
            let y: Vec<f64> = y.collect();
            let line = Line::through(&x, &y);
            (line.slope, line.slope_if_wandering(&y))
        };
        let holds = |slope: Estimate| slope.low < 0.5 * MB && 0.5 * MB < slope.high;
        let walks: Vec<_> = (0..400).map(|_| fit(1.0)).collect();
        let held = walks.iter().filter(|(_, wide)| holds(*wide)).count();
        assert!((360..=392).contains(&held), "{held}");
        assert!(walks.iter().filter(|(slope, _)| holds(*slope)).count() < 280);
        let noise = (0..400).map(|_| fit(0.0));
        let wider = noise
            .filter(|(slope, wide)| wide.high > 1.001 * slope.high)
            .count();
        assert!(wider < 100, "{wider}");
    }

    /// In percent, for these samples, each of which is the one before times a factor plus noise.
    #[test]
    fn the_interval_of_a_mean_holds_it_for_noise_and_for_samples_that_are_correlated() {
        let mut random = Random::new(3);
        let mut held = |samples: usize, factor: f64| {
            let fresh = (1.0 - factor * factor).sqrt();
            let mut holds = || {
                let mut at = random.normal();
                let next = |_| {
                    at = factor * at + fresh * random.normal();
                    at
                };
                let mean = mean_interval(&(0..samples).map(next).collect::<Vec<_>>(), false);
                mean.low < 0.0 && 0.0 < mean.high
            };
            (0..1000).filter(|_| holds()).count() as f64 / 10.0
        };
        let noise = [8, 16, 40, 150].map(|samples| held(samples, 0.0));
        let correlated = [24, 40, 150].map(|samples| held(samples, 0.9));
        let all = || noise.iter().chain(&correlated);
        assert!(
            all().all(|held| (92.0..98.0).contains(held)),
            "{noise:?} {correlated:?}"
        );
    }

    #[test]
    fn three_samples_that_deviate_from_a_line_have_a_wide_interval() {
        let line = Line::through(&[0.0, 1.0, 2.0], &[0.0, 10.0 * MB, 0.0]);
        assert!(line.slope.high > 5.0 * MB, "{:?}", line.slope);
    }

    #[test]
    fn teeth_beside_a_line_change_neither_its_slope_nor_the_truth_of_its_interval() {
        let x: Vec<f64> = (0..28).map(f64::from).collect();
        let ages: Vec<f64> = x.iter().map(|x| (x + 5.0) % 9.0).collect();
        let noise = |x: f64| (7.3 * x).sin();
        let pairs = x.iter().zip(&ages);
        let y: Vec<f64> = pairs
            .map(|(x, age)| (300.0 + 3.0 * x + 20.0 * age + noise(*x)) * MB)
            .collect();
        let slope = Line::beside(&[ages], &x, &y).slope;
        let [value, low, high] = [slope.value, slope.low, slope.high].map(|bytes| bytes / MB);
        assert!(low < 3.0 && 3.0 < high && high - low < 0.6, "{low} {high}");
        assert!((value - 3.0).abs() < 0.05, "{value}");
    }

    #[test]
    fn a_shape_like_x_itself_is_no_shape_beside_the_line() {
        let x: Vec<f64> = (0..20).map(f64::from).collect();
        let y: Vec<f64> = x.iter().map(|x| 3.0 * x * MB).collect();
        let slope = Line::beside(std::slice::from_ref(&x), &x, &y).slope;
        assert!((slope.value / MB - 3.0).abs() < 1e-6, "{slope:?}");
    }

    #[test]
    fn the_quantile_of_students_t_equals_the_table() {
        let table = [
            (1.0, 12.706),
            (2.0, 4.303),
            (3.0, 3.182),
            (4.0, 2.776),
            (10.0, 2.228),
        ];
        for (degrees, t) in table {
            let found = t_975(degrees);
            assert!((found - t).abs() < 0.01, "{degrees}: {found}");
        }
        assert!((t_975(1e9) - 1.96).abs() < 1e-4);
    }

    #[test]
    fn slopes_of_the_parts_add_up_to_the_slope_of_the_sum() {
        let part = |x: f64| 2.0 * x + (x * 7.0) % 5.0;
        let line = line(|x| part(x) + 3.0 * x);
        let parts: Vec<f64> = (0..20).map(|x| part(f64::from(x)) * MB).collect();
        let left = line.slope.value - line.slope_of(&parts);
        assert!((left / MB - 3.0).abs() < 1e-6, "{left}");
    }

    #[test]
    fn samples_that_resemble_their_neighbours_widen_the_interval() {
        let width_of = |y: &dyn Fn(usize) -> usize, has_trend: bool| {
            let values: Vec<f64> = (0..60).map(|i| y(i) as f64).collect();
            let found = mean_interval(&values, has_trend);
            found.high - found.low
        };
        let width = |y: &dyn Fn(usize) -> usize| width_of(y, false);
        let (fast, slow) = (width(&|i| i * 23 % 20), width(&|i| i % 20));
        assert!(slow > 2.0 * fast, "{slow} {fast}");
        let rising = width_of(&|i| i * 23 % 20 + 1000 * i, true);
        assert!(rising < 1.2 * fast, "{rising} {fast}");
        assert!(mean_interval(&[1.0, 2.0], false).low.is_nan());
    }
}
