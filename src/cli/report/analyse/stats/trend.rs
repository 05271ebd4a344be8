//! Classifies a series: level, growing, falling, warming up, or unclear.
//!
//! Growth needs a whole interval above the threshold, enough rounds after the warm-up, and a slope
//! that does not slow down.

use super::line::{Line, Slope};
use super::robust::{median, noise, without_outliers};
use crate::report::units::MB;

/// Fewer rounds get no verdict.
pub const MIN_ROUNDS: usize = 5;
/// With fewer rounds after the warm-up, growth looks like the end of the warm-up.
pub const MIN_SETTLED_ROUNDS: usize = 8;
/// A longer series is divided into this many groups. The bounds need no more samples, and the
/// median of a group removes outliers.
const MAX_GROUPS: usize = 20;
/// Growth is material if it adds this share of the size over all rounds,
const MATERIAL_SHARE: f64 = 0.03;
/// and at least this many bytes. Python allocates 1 MB at once, the kernel up to 2 MB.
pub const MATERIAL_BYTES: f64 = 4.0 * MB;

/// The growth over all rounds that matters for a process of this size.
pub fn material_growth(size: f64) -> f64 {
    f64::max(MATERIAL_SHARE * size, MATERIAL_BYTES)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrendClass {
    TooFewRounds,
    Level,
    /// Neither growth nor its absence is certain: the series swings, or has just stepped up.
    Unclear,
    Growing,
    Falling,
    /// Rising, but slowing down, or with too few rounds.
    WarmingUp,
}

#[derive(Clone, Debug)]
pub struct Trend {
    pub class: TrendClass,
    pub slope: Slope,
    /// The growth per x that matters. Growth needs a whole interval above it.
    pub threshold: f64,
    /// The first x after the warm-up.
    pub settled_from: f64,
    /// Number of samples in the warm-up.
    pub warm_up: usize,
    line: Option<Line>,
    /// The first group after the warm-up.
    first_group: usize,
}

impl Trend {
    /// `x` ascends strictly. `process_size` determines the growth that matters.
    pub fn of(x: &[f64], y: &[f64], process_size: f64) -> Trend {
        let groups = Groups::of(x, y);
        let mut trend = Trend {
            class: TrendClass::TooFewRounds,
            slope: Slope::default(),
            threshold: f64::INFINITY,
            settled_from: x.first().copied().unwrap_or(0.0),
            warm_up: 0,
            line: None,
            first_group: 0,
        };
        if x.len() < MIN_ROUNDS {
            return trend;
        }
        let (first_group, line) = groups.settled();
        trend.threshold = material_growth(process_size) / (x[x.len() - 1] - x[0]);
        (trend.slope, trend.first_group) = (line.slope, first_group);
        trend.warm_up = first_group * group_size(x.len());
        trend.settled_from = x[trend.warm_up];
        trend.line = Some(line);
        let Slope { low, high, .. } = trend.slope;
        let is_short = x.len() - trend.warm_up < MIN_SETTLED_ROUNDS;
        trend.class = match () {
            () if low > trend.threshold && (is_short || groups.is_slowing(first_group)) => {
                TrendClass::WarmingUp
            }
            () if low > trend.threshold => TrendClass::Growing,
            () if high < -trend.threshold => TrendClass::Falling,
            // Material growth is likely, or ten times as much is possible.
            () if trend.slope.per_x > trend.threshold => TrendClass::Unclear,
            () if high > 10.0 * trend.threshold => TrendClass::Unclear,
            () => TrendClass::Level,
        };
        trend
    }

    /// The slope of another quantity of the same samples, over the same rounds.
    pub fn slope_of(&self, x: &[f64], y: &[f64]) -> f64 {
        let settled = &Groups::of(x, y).y[self.first_group..];
        let line = self.line.as_ref();
        line.map_or(f64::NAN, |line| line.slope_of(settled))
    }

    /// `None` for too few rounds.
    pub fn known_slope(&self) -> Option<Slope> {
        (self.class != TrendClass::TooFewRounds).then_some(self.slope)
    }

    pub fn is_growing(&self) -> bool {
        self.class == TrendClass::Growing
    }
}

/// Samples per group.
fn group_size(n: usize) -> usize {
    n.div_ceil(MAX_GROUPS).max(1)
}

/// The series without isolated outliers, as the medians of at most [`MAX_GROUPS`] groups.
struct Groups {
    x: Vec<f64>,
    y: Vec<f64>,
}

impl Groups {
    fn of(x: &[f64], y: &[f64]) -> Groups {
        /// In a shorter series, an isolated low sample may be the foot of a sawtooth.
        const MIN_FOR_OUTLIERS: usize = 12;
        let min_noise = f64::max(median(y).abs() / 1000.0, 64.0 * 1024.0);
        let y = match y.len() < MIN_FOR_OUTLIERS {
            true => y.to_vec(),
            false => without_outliers(x, y, noise(y).max(min_noise)),
        };
        let grouped = |of: &[f64]| of.chunks(group_size(of.len())).map(median).collect();
        Groups {
            x: grouped(x),
            y: grouped(&y),
        }
    }

    fn line(&self, from: usize, to: usize) -> Line {
        Line::through(&self.x[from..to], &self.y[from..to])
    }

    /// The first group after the warm-up, and the line from there. It is the start in the first half
    /// that gives the narrowest interval, as simulations truncate their transient (White 1997). A
    /// later start must narrow the interval by a fifth.
    fn settled(&self) -> (usize, Line) {
        const MIN_IMPROVEMENT: f64 = 0.8;
        let n = self.y.len();
        let mut best = (0, self.line(0, n));
        let is_candidate = |from: &usize| n - from >= MIN_ROUNDS && self.is_off_level(*from);
        for from in (1..=n / 2).filter(is_candidate) {
            let line = self.line(from, n);
            if line.half_width < MIN_IMPROVEMENT * best.1.half_width {
                best = (from, line);
            }
        }
        best
    }

    /// True if three quarters of the groups before `from` lie outside the range of the later ones.
    /// This holds for a warm-up, but not for the teeth of a sawtooth.
    fn is_off_level(&self, from: usize) -> bool {
        let mut tail = self.y[from..].to_vec();
        tail.sort_unstable_by(f64::total_cmp);
        let edge = if from < 3 { 0 } else { tail.len() / 5 };
        let (low, high) = (tail[edge], tail[tail.len() - 1 - edge]);
        let count = |is_outside: &dyn Fn(f64) -> bool| {
            let earlier = self.y[..from].iter();
            earlier.filter(|&&y| is_outside(y)).count()
        };
        4 * usize::max(count(&|y| y < low), count(&|y| y > high)) >= 3 * from
    }

    /// True if the later half rises much more slowly than the earlier half.
    fn is_slowing(&self, from: usize) -> bool {
        let half = from + (self.y.len() - from) / 2;
        if half - from < 4 {
            return false;
        }
        let (early, late) = (self.line(from, half), self.line(half, self.y.len()));
        let tolerance = (early.half_width + late.half_width) / 2.0;
        late.slope.per_x < 0.6 * early.slope.per_x
            && late.slope.per_x + tolerance < early.slope.per_x
    }
}
