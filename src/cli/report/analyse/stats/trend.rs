//! The decision: is this series level, growing, or not settled yet?

use super::line::{Line, Slope};
use super::robust::{median, noise, without_outliers};
use crate::report::units::MB;

/// Fewer rounds say nothing.
pub const LEAST: usize = 5;
/// Fewer rounds after the warm-up do not tell growth from the rest of it.
pub const LEAST_GROWING: usize = 8;
/// More are put together: a bound needs no more, and groups know nothing of single wild rounds.
const MOST: usize = 20;
/// Growth is what adds this share of the size over the rounds that were watched, ...
const MATERIAL_SHARE: f64 = 0.03;
/// ... and more than a few pieces of a heap: Python takes 1 MB at once, the kernel 2.
pub const MATERIAL_BYTES: f64 = 4.0 * MB;

/// What matters in a process of this size.
pub fn material(size: f64) -> f64 {
    f64::max(MATERIAL_SHARE * size, MATERIAL_BYTES)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    TooFew,
    Level,
    /// Neither growth nor its absence is sure: it swings, or has just stepped up.
    Unclear,
    Growing,
    Falling,
    /// Rising, but slowing down, or watched for too short a time.
    Settling,
}

#[derive(Clone, Debug)]
pub struct Trend {
    pub course: Course,
    pub slope: Slope,
    /// Growth per x that matters: the whole interval must lie above it.
    pub threshold: f64,
    /// The first x after the warm-up.
    pub settled_x: f64,
    /// Samples before it.
    pub warm_up: usize,
    line: Option<Line>,
    /// The first group after the warm-up.
    from: usize,
}

impl Trend {
    /// `x` ascends strictly; `scale` is the size of the whole that growth is compared with.
    pub fn of(x: &[f64], y: &[f64], scale: f64) -> Trend {
        let groups = Groups::of(x, y);
        let mut trend = Trend {
            course: Course::TooFew,
            slope: Slope::default(),
            threshold: f64::INFINITY,
            settled_x: x.first().copied().unwrap_or(0.0),
            warm_up: 0,
            line: None,
            from: 0,
        };
        if x.len() < LEAST {
            return trend;
        }
        let (from, line) = groups.settled();
        trend.threshold = material(scale) / (x[x.len() - 1] - x[0]);
        (trend.slope, trend.from) = (line.slope, from);
        trend.warm_up = from * width(x.len());
        trend.settled_x = x[trend.warm_up];
        trend.line = Some(line);
        let Slope { low, high, .. } = trend.slope;
        let is_short = x.len() - trend.warm_up < LEAST_GROWING;
        trend.course = match () {
            () if low > trend.threshold && (is_short || groups.is_slowing(from)) => {
                Course::Settling
            }
            () if low > trend.threshold => Course::Growing,
            () if high < -trend.threshold => Course::Falling,
            // As much as matters is likely, or ten times as much could hide in it.
            () if trend.slope.per_x > trend.threshold => Course::Unclear,
            () if high > 10.0 * trend.threshold => Course::Unclear,
            () => Course::Level,
        };
        trend
    }

    /// The slope of another quantity of the same samples, over the same stretch.
    pub fn slope_of(&self, x: &[f64], y: &[f64]) -> f64 {
        let settled = &Groups::of(x, y).y[self.from..];
        let line = self.line.as_ref();
        line.map_or(f64::NAN, |line| line.slope_of(settled))
    }

    /// `None`: too few samples to name one.
    pub fn known_slope(&self) -> Option<Slope> {
        (self.course != Course::TooFew).then_some(self.slope)
    }

    pub fn is_growing(&self) -> bool {
        self.course == Course::Growing
    }
}

/// Samples that one group stands for.
fn width(n: usize) -> usize {
    n.div_ceil(MOST).max(1)
}

/// The series in at most [`MOST`] groups, each with its median, without lone wild samples.
struct Groups {
    x: Vec<f64>,
    y: Vec<f64>,
}

impl Groups {
    fn of(x: &[f64], y: &[f64]) -> Groups {
        /// In fewer a lone low sample may be the foot of a tooth.
        const TELLING: usize = 12;
        let finest = f64::max(median(y).abs() / 1000.0, 64.0 * 1024.0);
        let y = match y.len() < TELLING {
            true => y.to_vec(),
            false => without_outliers(x, y, noise(y).max(finest)),
        };
        let grouped = |of: &[f64]| of.chunks(width(of.len())).map(median).collect();
        Groups {
            x: grouped(x),
            y: grouped(&y),
        }
    }

    fn line(&self, from: usize, to: usize) -> Line {
        Line::through(&self.x[from..to], &self.y[from..to])
    }

    /// Where the warm-up ends: the start in the first half from which the slope is known best, as
    /// simulations drop their transient (White 1997). A later start must tell clearly more.
    fn settled(&self) -> (usize, Line) {
        const CLEARLY: f64 = 0.8;
        let n = self.y.len();
        let mut best = (0, self.line(0, n));
        for from in (1..=n / 2).filter(|&from| n - from >= LEAST && self.is_elsewhere(from)) {
            let line = self.line(from, n);
            if line.error < CLEARLY * best.1.error {
                best = (from, line);
            }
        }
        best
    }

    /// Most of what comes before lies beside what comes after: a warm-up does, a tooth does not.
    fn is_elsewhere(&self, from: usize) -> bool {
        let mut tail = self.y[from..].to_vec();
        tail.sort_unstable_by(f64::total_cmp);
        let edge = if from < 3 { 0 } else { tail.len() / 5 };
        let (low, high) = (tail[edge], tail[tail.len() - 1 - edge]);
        let count =
            |beside: &dyn Fn(f64) -> bool| self.y[..from].iter().filter(|&&y| beside(y)).count();
        4 * usize::max(count(&|y| y < low), count(&|y| y > high)) >= 3 * from
    }

    /// The later half rises much slower than the earlier one.
    fn is_slowing(&self, from: usize) -> bool {
        let half = from + (self.y.len() - from) / 2;
        if half - from < 4 {
            return false;
        }
        let (early, late) = (self.line(from, half), self.line(half, self.y.len()));
        let apart = (early.error + late.error) / 2.0;
        late.slope.per_x < 0.6 * early.slope.per_x && late.slope.per_x + apart < early.slope.per_x
    }
}
