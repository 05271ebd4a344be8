//! The decision: is this series level, growing, or not settled yet?

use super::robust::{median, noise, quantile, spread, without_outliers};
use super::settle::settled_from;
use super::slope::{most_sigmas, residuals, theil_sen, Slope};
use super::steps::{change_points, error, levels};
use super::teeth::{teeth, Teeth};

/// Fewer samples say nothing.
const LEAST: usize = 5;
/// Fewer settled samples do not tell a leak from a warm-up.
const LEAST_GROWING: usize = 8;
/// More are thinned: all pairs are looked at.
const MOST: usize = 192;
/// How surely (Kendall, in sigmas) a slope must not be zero. Many series are looked at.
const SURE: f64 = 3.5;
/// The same where the form of the series speaks for growth already.
const LIKELY: f64 = 1.5;
/// Growth below this is nothing to act on.
const MATERIAL_BYTES: f64 = 1024.0 * 1024.0;
const MATERIAL_SHARE: f64 = 0.005;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    TooFew,
    Level,
    Growing,
    Falling,
    /// Rising, but slowing down, just stepped up, or watched for too short a time.
    Settling,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    Line,
    /// Jumps, the last of them at this x.
    Steps {
        ups: usize,
        last_x: f64,
    },
    Sawtooth {
        height: f64,
    },
}

#[derive(Clone, Debug)]
pub struct Trend {
    pub course: Course,
    pub shape: Shape,
    pub slope: Slope,
    /// The first x after the warm-up.
    pub settled_x: f64,
    /// Samples before it.
    pub warm_up: usize,
    /// The scatter around the trend.
    pub noise: f64,
    /// Indices (into the thinned series) that may be compared with each other.
    basis: Vec<Vec<usize>>,
}

impl Trend {
    /// `x` ascending.
    pub fn of(x: &[f64], y: &[f64]) -> Trend {
        let (x, y, width) = (thin(x), thin(y), width(x.len()));
        let resolution = f64::max(median(&y).abs() / 1000.0, 64.0 * 1024.0);
        let noise = f64::max(noise(&y), resolution);
        let y = without_outliers(&y, noise);
        let from = if y.len() < LEAST {
            0
        } else {
            settled_from(&x, &y, noise)
        };
        let judge = |from: usize| Series::from(&x, &y, noise, from).judge();
        let mut from = from;
        let mut trend = judge(from);
        // Jumps far apart: what came before the last few of them passed for a warm-up.
        let early = y.len() / 10;
        if matches!(trend.shape, Shape::Steps { .. }) && !trend.is_growing() && from > early {
            let whole = judge(early);
            if whole.is_growing() && matches!(whole.shape, Shape::Steps { .. }) {
                (from, trend) = (early, whole);
            }
        }
        trend.warm_up = from * width;
        trend.basis.iter_mut().flatten().for_each(|i| *i += from);
        trend
    }

    /// The slope of another quantity of the same samples, over the same stretch.
    pub fn slope_of(&self, x: &[f64], y: &[f64]) -> f64 {
        let (x, y) = (thin(x), thin(y));
        mean_slope(&x, &y, &self.basis)
    }

    pub fn is_growing(&self) -> bool {
        self.course == Course::Growing
    }
}

fn mean_slope(x: &[f64], y: &[f64], basis: &[Vec<usize>]) -> f64 {
    let pick = |of: &[f64], which: &[usize]| which.iter().map(|&i| of[i]).collect::<Vec<_>>();
    let slopes = basis
        .iter()
        .map(|b| theil_sen(&pick(x, b), &pick(y, b)).per_x);
    slopes.sum::<f64>() / basis.len().max(1) as f64
}

fn width(n: usize) -> usize {
    n.div_ceil(MOST).max(1)
}

/// Medians of equally long groups.
fn thin(values: &[f64]) -> Vec<f64> {
    values.chunks(width(values.len())).map(median).collect()
}

/// The settled part of a series.
struct Series<'a> {
    x: &'a [f64],
    y: &'a [f64],
    noise: f64,
    warm_up: usize,
}

impl<'a> Series<'a> {
    fn from(x: &'a [f64], y: &'a [f64], noise: f64, from: usize) -> Self {
        Series {
            x: &x[from..],
            y: &y[from..],
            noise,
            warm_up: from,
        }
    }

    fn judge(&self) -> Trend {
        if self.y.len() + self.warm_up < LEAST {
            let slope = theil_sen(self.x, self.y);
            return self.trend(Course::TooFew, Shape::Line, slope, 0.0);
        }
        match teeth(self.y, self.noise) {
            Some(teeth) => self.sawtooth(&teeth),
            None => self.line_or_steps(),
        }
    }

    fn material(&self) -> f64 {
        f64::max(MATERIAL_BYTES, MATERIAL_SHARE * median(self.y))
    }

    fn span(&self) -> f64 {
        self.x.last().unwrap_or(&0.0) - self.x.first().unwrap_or(&0.0)
    }

    fn trend(&self, course: Course, shape: Shape, slope: Slope, noise: f64) -> Trend {
        Trend {
            course,
            shape,
            slope,
            settled_x: self.x.first().copied().unwrap_or(0.0),
            warm_up: 0,
            noise,
            basis: vec![(0..self.x.len()).collect()],
        }
    }

    /// Low points must rise, high points with them, by more than they scatter.
    fn sawtooth(&self, teeth: &Teeth) -> Trend {
        let basis = vec![teeth.floors.clone(), teeth.peaks.clone()];
        let pick = |of: &[f64], at: &[usize]| at.iter().map(|&i| of[i]).collect::<Vec<_>>();
        let (x, y) = (pick(self.x, &teeth.floors), pick(self.y, &teeth.floors));
        let floors = theil_sen(&x, &y);
        let scatter = spread(&residuals(&x, &y, floors.per_x));
        let span = x[x.len() - 1] - x[0];
        let per_x = mean_slope(self.x, self.y, &basis);
        let (floor_rise, rise) = (floors.per_x * span, per_x * span);
        // Wild samples can look like two or three teeth: then the rest does not rise with them.
        let whole = theil_sen(self.x, self.y);
        let growing = rise >= self.material()
            && f64::min(floor_rise, rise) >= f64::max(3.0 * self.noise, 2.0 * scatter)
            && 2.0 * rise >= 1.3 * floor_rise
            && floors.sigmas >= 0.6 * most_sigmas(x.len())
            && whole.sigmas >= LIKELY
            && rise >= teeth.telling_rise();
        let course = if growing {
            Course::Growing
        } else {
            Course::Level
        };
        let shape = Shape::Sawtooth {
            height: teeth.height,
        };
        Trend {
            basis,
            ..self.trend(course, shape, Slope { per_x, ..floors }, scatter)
        }
    }

    fn line_or_steps(&self) -> Trend {
        let slope = theil_sen(self.x, self.y);
        let lifted = residuals(self.x, self.y, slope.per_x);
        let scatter = spread(&lifted);
        let line_error: f64 = lifted.iter().map(|r| r * r).sum();
        let jumps = change_points(self.y, self.noise);
        if !jumps.is_empty() && error(self.y, &jumps, self.noise) < line_error {
            if let Some((mut course, shape)) = self.steps(&jumps) {
                course = match course {
                    Course::Growing if slope.sigmas < LIKELY => Course::Level,
                    Course::Growing if self.is_smooth(slope) && self.is_slowing() => {
                        Course::Settling
                    }
                    course => course,
                };
                return self.trend(course, shape, slope, scatter);
            }
        }
        self.trend(self.line(slope, scatter), Shape::Line, slope, scatter)
    }

    /// Levels with jumps between them; `None` when the jumps lead nowhere in particular.
    fn steps(&self, jumps: &[usize]) -> Option<(Course, Shape)> {
        let levels = levels(self.y, jumps);
        let heights: Vec<f64> = levels.windows(2).map(|w| w[1] - w[0]).collect();
        let net: f64 = heights.iter().sum();
        let climbed: f64 = heights.iter().filter(|h| **h > 0.0).sum();
        let highest = heights.iter().copied().fold(0.0, f64::max);
        let n = self.y.len();
        // Neither the tail of a warm-up nor a ripple is a jump.
        let telling = |j: usize, h: f64| 5.0 * h >= highest && 10 * j >= n;
        let ups: Vec<usize> = jumps
            .iter()
            .zip(heights)
            .filter(|(&j, h)| telling(j, *h))
            .map(|(&j, _)| j)
            .collect();
        let last = *ups.last()?;
        let seen_before = quantile(&self.y[..last], 0.95) > levels[levels.len() - 1];
        if net < self.material() || net < 0.5 * climbed || seen_before {
            return None;
        }
        let plateau = n - last;
        let longest = ups.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0);
        // Jumps that came again and again are over once the level held twice as long as ever.
        let course = match ups.len() {
            3.. if plateau < usize::max(LEAST, 2 * longest) => Course::Growing,
            0..3 if plateau < usize::max(LEAST, n / 6) => Course::Settling,
            _ => Course::Level,
        };
        Some((
            course,
            Shape::Steps {
                ups: ups.len(),
                last_x: self.x[last],
            },
        ))
    }

    fn line(&self, slope: Slope, scatter: f64) -> Course {
        let n = self.y.len();
        let rise = slope.per_x * self.span();
        let material = rise.abs() >= f64::max(self.material(), 2.0 * scatter);
        // Where the line towers over what scatters around it, resemblance of the scatter is no doubt.
        let needed = match rise.abs() > 10.0 * scatter {
            true => LIKELY,
            false => SURE,
        };
        let sure = slope.sigmas.abs() >= f64::min(needed, 0.85 * most_sigmas(n));
        match () {
            () if !material || !sure => Course::Level,
            () if rise < 0.0 => Course::Falling,
            () if n < LEAST_GROWING => Course::Settling,
            () if self.has_stopped() => Course::Level,
            () if self.is_smooth(slope) && self.is_slowing() => Course::Settling,
            () => Course::Growing,
        }
    }

    /// The last third rises by next to nothing of what the whole rose.
    fn has_stopped(&self) -> bool {
        let third = self.y.len().div_ceil(3);
        let parts: Vec<f64> = self.y.chunks(third).map(median).collect();
        let (first, last) = (parts[0], parts[parts.len() - 1]);
        last - parts[parts.len() - 2] < 0.15 * (last - first)
    }

    /// Most samples rise by about the slope: a curve, though levels may fit it well.
    fn is_smooth(&self, slope: Slope) -> bool {
        let rises: Vec<f64> = self.y.windows(2).map(|w| w[1] - w[0]).collect();
        median(&rises) * (self.y.len() - 1) as f64 >= 0.5 * slope.per_x * self.span()
    }

    /// The second half rises much slower than the first one.
    fn is_slowing(&self) -> bool {
        let half = self.y.len() / 2;
        let first = theil_sen(&self.x[..half], &self.y[..half]);
        let second = theil_sen(&self.x[half..], &self.y[half..]);
        second.high < first.low && second.per_x < 0.67 * first.per_x
    }
}
