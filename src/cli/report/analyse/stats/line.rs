//! Fits a line to autocorrelated samples and bounds its slope.
//!
//! Residuals of memory sizes (a collector's teeth, a filling cache, fragmentation) are
//! autocorrelated, so the interval of least squares would be too narrow. The fit assumes AR(1)
//! residuals (Prais and Winsten 1954), with the largest autocorrelation that the samples allow. At 0
//! it equals least squares; near 1 the slope is the mean of the steps.

/// Allocators and the kernel change sizes in pieces of up to this size.
const RESOLUTION_BYTES: f64 = 64.0 * 1024.0;

/// Growth of y per unit of x, with the bounds of its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Slope {
    pub per_x: f64,
    pub low: f64,
    pub high: f64,
}

impl Slope {
    /// The slope of the opposite change.
    pub fn negated(self) -> Slope {
        Slope {
            per_x: -self.per_x,
            low: -self.high,
            high: -self.low,
        }
    }
}

/// A fitted line. The slope is the weighted sum of the samples.
#[derive(Clone, Debug)]
pub struct Line {
    pub slope: Slope,
    weights: Vec<f64>,
}

impl Line {
    /// `x` ascends strictly. With fewer than four samples the bounds mean nothing.
    pub fn through(x: &[f64], y: &[f64]) -> Line {
        Line::beside(&[], x, y)
    }

    /// `resolution` is the smallest change that y can show.
    pub fn with_resolution(x: &[f64], y: &[f64], resolution: f64) -> Line {
        Line::fit(&[], x, y, resolution)
    }

    /// The line through at least three samples whose deviations do not depend on each other.
    pub fn through_independent(x: &[f64], y: &[f64]) -> Line {
        let fit = Fit::new(&[], x, 0.0);
        Line::bounded(x, y, &fit, y.len() as f64 - 2.0, RESOLUTION_BYTES)
    }

    /// The line, if y also contains unknown multiples of these shapes, such as a tooth. They are
    /// fitted together with the line, so that the interval accounts for them.
    pub fn beside(shapes: &[Vec<f64>], x: &[f64], y: &[f64]) -> Line {
        Line::fit(shapes, x, y, RESOLUTION_BYTES)
    }

    fn fit(shapes: &[Vec<f64>], x: &[f64], y: &[f64], resolution: f64) -> Line {
        let free = free_shapes(shapes, x);
        let fit = Fit::new(&free, x, 0.0);
        let correlation = autocorrelation(&fit.residuals(y));
        let fit = Fit::new(&free, x, correlation);
        let degrees = (y.len() - free.len()) as f64 - 3.0;
        Line::bounded(x, y, &fit, degrees, resolution)
    }

    fn bounded(x: &[f64], y: &[f64], fit: &Fit, degrees: f64, resolution: f64) -> Line {
        let weights = fit.weights();
        let per_x = slope_of(&weights, y);
        let half_width = t_975(degrees) * fit.standard_error(y);
        let half_width = half_width + resolution / (x[x.len() - 1] - x[0]);
        let slope = Slope {
            per_x,
            low: per_x - half_width,
            high: per_x + half_width,
        };
        Line { slope, weights }
    }

    /// The deviation of the samples from the line.
    pub fn residual_deviation(&self, x: &[f64], y: &[f64]) -> f64 {
        let left = residuals(x, y, self.slope.per_x);
        (dot(&left, &left) / left.len() as f64).sqrt()
    }

    /// The slope of another quantity of the same samples.
    pub fn slope_of(&self, y: &[f64]) -> f64 {
        slope_of(&self.weights, y)
    }
}

/// The weights sum up to 0. Sizes are large compared with their changes, so digits would be lost.
fn slope_of(weights: &[f64], y: &[f64]) -> f64 {
    weights
        .iter()
        .zip(y)
        .map(|(weight, value)| weight * (value - y[0]))
        .sum()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The distances of the samples from the line of this slope through their mean.
fn residuals(x: &[f64], y: &[f64], per_x: f64) -> Vec<f64> {
    let (mean_x, mean_y) = (mean(x), mean(y));
    let residual = |(x, y): (&f64, &f64)| y - mean_y - per_x * (x - mean_x);
    x.iter().zip(y).map(residual).collect()
}

/// The estimate of the lag-1 autocorrelation of values with mean 0.
pub fn lag_1_correlation(values: &[f64]) -> f64 {
    let squares = dot(values, values);
    match squares > 0.0 {
        true => dot(values, &values[1..]) / squares,
        false => 0.0,
    }
}

/// An upper bound of the lag-1 autocorrelation: the estimate, corrected for the bias that the fit
/// introduces (Marriott and Pope 1954), plus two standard errors.
fn autocorrelation(residuals: &[f64]) -> f64 {
    let n = residuals.len() as f64;
    let estimate = lag_1_correlation(residuals);
    let unbiased = (estimate + 2.0 / n) / f64::max(1.0 - 4.0 / n, 0.2);
    let error = ((1.0 - unbiased * unbiased).max(0.0) / n).sqrt();
    (unbiased + 2.0 * error).clamp(0.0, 0.99)
}

/// The part of each value that the previous value does not predict.
fn innovations(values: &[f64], correlation: f64) -> Vec<f64> {
    let first = values[0] * (1.0 - correlation * correlation).sqrt();
    let later = values.windows(2).map(|w| w[1] - correlation * w[0]);
    std::iter::once(first).chain(later).collect()
}

/// The shapes that change, and that x does not resemble too much to be told apart from.
fn free_shapes(shapes: &[Vec<f64>], x: &[f64]) -> Vec<Vec<f64>> {
    const MAX_RESEMBLANCE: f64 = 0.9;
    let centred = |of: &[f64]| -> Vec<f64> {
        let middle = mean(of);
        of.iter().map(|value| value - middle).collect()
    };
    let x = centred(x);
    let is_free = |shape: &&Vec<f64>| {
        let shape = centred(shape);
        let squares = dot(&shape, &shape);
        squares > 0.0 && dot(&shape, &x).powi(2) < MAX_RESEMBLANCE * squares * dot(&x, &x)
    };
    shapes.iter().filter(is_free).cloned().collect()
}

/// Least squares of innovations: a constant, other shapes, and x.
struct Fit {
    correlation: f64,
    /// An orthogonal basis of the innovations of everything but x.
    others: Vec<Vec<f64>>,
    /// The innovations of x that the others do not explain.
    x: Vec<f64>,
}

impl Fit {
    fn new(shapes: &[Vec<f64>], x: &[f64], correlation: f64) -> Fit {
        let middle = mean(x);
        let centred: Vec<f64> = x.iter().map(|x| x - middle).collect();
        let ones = vec![1.0; x.len()];
        let mut others: Vec<Vec<f64>> = Vec::new();
        for shape in std::iter::once(&ones).chain(shapes) {
            let shape = innovations(shape, correlation);
            let left = without(&others, &shape);
            // One that the others explain would divide by zero.
            if dot(&left, &left) > 1e-9 * dot(&shape, &shape) {
                others.push(left);
            }
        }
        Fit {
            correlation,
            x: without(&others, &innovations(&centred, correlation)),
            others,
        }
    }

    /// The innovations of y that nothing explains.
    fn residuals(&self, y: &[f64]) -> Vec<f64> {
        let offset = y[0];
        let shifted: Vec<f64> = y.iter().map(|y| y - offset).collect();
        let left = without(&self.others, &innovations(&shifted, self.correlation));
        without(std::slice::from_ref(&self.x), &left)
    }

    /// The weights of the samples in the slope.
    fn weights(&self) -> Vec<f64> {
        let squares = dot(&self.x, &self.x);
        // Convert weights of innovations to weights of samples.
        let first_scale = innovations(&[1.0], self.correlation)[0];
        let own = |i: usize| self.x[i] * if i == 0 { first_scale } else { 1.0 };
        let next = |i: usize| self.x.get(i + 1).unwrap_or(&0.0) * self.correlation;
        let weight = |i: usize| (own(i) - next(i)) / squares;
        (0..self.x.len()).map(weight).collect()
    }

    /// The standard error of the slope.
    fn standard_error(&self, y: &[f64]) -> f64 {
        let left = self.residuals(y);
        let degrees = left.len() as f64 - 1.0 - self.others.len() as f64;
        (dot(&left, &left) / degrees.max(1.0) / dot(&self.x, &self.x)).sqrt()
    }
}

/// The part of the values that these orthogonal vectors do not explain.
fn without(others: &[Vec<f64>], values: &[f64]) -> Vec<f64> {
    let mut left = values.to_vec();
    for other in others {
        let share = dot(other, &left) / dot(other, other);
        left.iter_mut()
            .zip(other)
            .for_each(|(left, other)| *left -= share * other);
    }
    left
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::units::MB;

    /// The line through 20 rounds with these sizes in MB.
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
    fn a_perfect_line_has_its_slope_and_a_positive_lower_bound() {
        let found = slope(|x| 100.0 + 3.0 * x);
        assert!((found.per_x - 3.0).abs() < 1e-6);
        assert!(found.low > 2.0 && found.high < 3.1, "{found:?}");
    }

    #[test]
    fn equal_samples_have_slope_zero_and_bounds_of_the_resolution() {
        let found = slope(|_| 100.0);
        assert_eq!(found.per_x.abs(), 0.0);
        assert!(found.low > -0.01 && found.high < 0.01, "{found:?}");
    }

    #[test]
    fn autocorrelated_residuals_widen_the_interval() {
        let width = |line: Line| line.slope.high - line.slope.low;
        let fast = width(line(|x| (x * 7.0) % 5.0));
        let slow = width(line(|x| (x * 0.8) % 5.0));
        assert!(slow > 1.5 * fast, "{slow} {fast}");
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
        let [per_x, low, high] = [slope.per_x, slope.low, slope.high].map(|bytes| bytes / MB);
        assert!(low < 3.0 && 3.0 < high && high - low < 0.6, "{low} {high}");
        assert!((per_x - 3.0).abs() < 0.05, "{per_x}");
    }

    #[test]
    fn a_shape_like_x_itself_is_no_shape_beside_the_line() {
        let x: Vec<f64> = (0..20).map(f64::from).collect();
        let y: Vec<f64> = x.iter().map(|x| 3.0 * x * MB).collect();
        let slope = Line::beside(std::slice::from_ref(&x), &x, &y).slope;
        assert!((slope.per_x / MB - 3.0).abs() < 1e-6, "{slope:?}");
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
        let left = line.slope.per_x - line.slope_of(&parts);
        assert!((left / MB - 3.0).abs() < 1e-6, "{left}");
    }
}
