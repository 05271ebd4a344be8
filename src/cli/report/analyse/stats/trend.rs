//! Classifies a series: level, growing, falling, warming up, or unclear.
//!
//! The series is divided into segments by PELT, without bursts. The last regime decides: the segments at the end that have
//! one slope. Its slope is fitted together with the steps between its segments. A series that swings is judged as a whole,
//! from its bend on, or beside its teeth.

use std::ops::Range;

use super::line::{Estimate, Line};
use super::regime::{after, Regime, Step, MIN_ROUNDS, MIN_SETTLED_ROUNDS};
use super::series::{medians, Series};
use super::teeth::Teeth;
use crate::report::units::MB;

/// Growth is material if it adds this share of the size over all rounds,
const MATERIAL_SHARE: f64 = 0.03;
/// and at least this many bytes. Python allocates 1 MB at once, the kernel up to 2 MB.
pub const MATERIAL_BYTES: f64 = 4.0 * MB;
/// Growth must exceed zero by this multiple of the distance to the 95 % bound, so that false alarms are rare.
const CERTAINTY: f64 = 1.35;

/// A wider half of an interval, in multiples of the growth that matters, decides nothing.
const OPEN: f64 = 10.0;
/// Smaller changes are invisible, as a share of the growth that matters.
const RESOLUTION: f64 = 1.0 / 30.0;
/// So many steps down are the ends of teeth.
const MIN_FALLS: usize = 2;
/// Steps up are those of a staircase if each is higher than so many deviations of the noise.
const CLEAR_STEP: f64 = 3.0;

/// The growth over all rounds that matters for a process of this size.
pub fn material_growth(size: f64) -> f64 {
    f64::max(MATERIAL_SHARE * size, MATERIAL_BYTES)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrendClass {
    #[default]
    TooFewRounds,
    Level,
    /// Neither growth nor its absence is certain.
    Unclear,
    Growing,
    Falling,
    /// Rising, but slowing down, or with too few rounds.
    WarmingUp,
}

#[derive(Clone, Debug, Default)]
pub struct Trend {
    pub class: TrendClass,
    pub slope: Estimate,
    /// The growth that matters, and the same per x.
    material: f64,
    pub threshold: f64,
    /// The first x of the last regime.
    pub settled_from: f64,
    /// Number of samples before it: a warm-up, or growth that ended.
    pub warm_up: usize,
    /// The rise from the first sample to the last regime.
    pub rise_before: f64,
    /// The steps within the last regime.
    pub steps: Vec<Step>,
    line: Option<Line>,
    /// The samples that the line goes through.
    groups: Vec<Range<usize>>,
    /// The deviation of autocorrelated noise.
    noise: f64,
    /// Steps down in the whole series.
    falls: usize,
}

impl Trend {
    /// `x` ascends strictly. `process_size` determines the growth that matters.
    ///
    /// The last regime decides where it is clear. A series that swings has none: there all samples count, or those after one
    /// bend, with one line beside the swing, or beside its teeth if that is more exact.
    pub fn of(x: &[f64], y: &[f64], process_size: f64) -> Trend {
        let mut trend = Trend::chosen(x, y, process_size);
        let Some(line) = &trend.line else {
            return trend;
        };
        let [x, y] = [x, y].map(|all| medians(&trend.groups, all));
        let mut wide = line.slope_if_wandering(&y);
        // Growth may have become faster or slower: what the line leaves grows or falls in the later half.
        let half = x.len() / 2;
        if trend.is_growing() && half >= MIN_SETTLED_ROUNDS {
            let late = Line::through(&x[half..], &line.left_of(&y)[half..]).slope;
            let late = late.map(|rate| rate + wide.value);
            if late.value > wide.high {
                wide.high = late.high;
            }
            if late.value < wide.low {
                wide.low = late.low;
            }
        }
        // The class stays: growth that is certain has a lower bound that is not below zero, a fall an upper one not above.
        let (low, high) = match () {
            () if trend.slope.low > 0.0 => (wide.low.max(0.0), wide.high),
            () if trend.slope.high < 0.0 => (wide.low, wide.high.min(0.0)),
            () => (wide.low, wide.high),
        };
        let is_open = wide.value - wide.low > OPEN * trend.threshold;
        // A season of a few periods resembles a size that wanders, but has no trend.
        let has_trend = wide.value.abs() > 1.5 * trend.threshold;
        if trend.class == TrendClass::Level && is_open && has_trend {
            trend.class = TrendClass::Unclear;
        }
        trend.slope = Estimate { low, high, ..wide };
        trend
    }

    fn chosen(x: &[f64], y: &[f64], process_size: f64) -> Trend {
        if x.len() < MIN_ROUNDS {
            return Trend {
                threshold: f64::INFINITY,
                settled_from: x.first().copied().unwrap_or(0.0),
                ..Trend::default()
            };
        }
        let material = material_growth(process_size);
        let resolution = RESOLUTION * material;
        let last_regime = |y: &[f64], shapes: &[Vec<f64>]| {
            let mut series = Series::of(x, y, shapes, resolution);
            let regime = Regime::last(&mut series, material);
            (Trend::judge(x, &series, regime, material), series)
        };
        let teeth = Teeth::of(x, y, resolution);
        let (trend, mut series) = last_regime(y, &[]);
        if teeth.is_none() && !trend.swings() && (!trend.is_vague() || trend.is_staircase()) {
            return trend.open_if_rising_in_steps(x.len());
        }
        // A step behind a warm-up does not bring the warm-up back.
        let (first, is_one_step) = (series.y[0], trend.steps.len() == 1);
        let is_start = trend.warm_up <= usize::max(3, x.len() / 10);
        let is_warm_up = trend.class == TrendClass::Level && is_one_step && is_start;
        if is_warm_up {
            let begin = series
                .groups
                .partition_point(|group| group.start < trend.warm_up);
            series.remove(0..begin);
        }
        series.remove_outliers(resolution);
        let mut regime = Regime::whole(&series, material);
        if is_warm_up {
            regime.rise_before += series.y[0] - first;
        }
        let whole = Trend::judge(x, &series, regime, material);
        let beside_teeth = teeth.map(|teeth| last_regime(&teeth.rest, &teeth.shapes).0);
        let is_better = |trend: &Trend| !trend.swings() && trend.width() < whole.width();
        beside_teeth.filter(is_better).unwrap_or(whole)
    }

    /// True if steps down follow rises, before the last regime or in it, or take back half of the growth: these are no
    /// single events.
    fn swings(&self) -> bool {
        let fallen: f64 = self.steps.iter().map(|step| -step.height.min(0.0)).sum();
        let growth = self.material * self.slope.value / self.threshold;
        self.falls >= MIN_FALLS || self.is_growing() && 2.0 * fallen > growth
    }

    /// True if bursts or a swing that were not recognized may make the interval wide.
    fn is_vague(&self) -> bool {
        self.class == TrendClass::Unclear || self.width() > 4.0 * self.threshold
    }

    /// True for several clear steps up alone, which widen the interval, too.
    fn is_staircase(&self) -> bool {
        let least = CLEAR_STEP * self.noise;
        self.steps.len() > 1 && self.steps.iter().all(|step| step.height > least)
    }

    /// A level with steps up behind a rise may go on rising. The longer the rise, the fewer steps show it.
    fn open_if_rising_in_steps(mut self, samples: usize) -> Trend {
        let steps_up = self.steps.iter().filter(|step| step.height > self.material);
        let is_long = steps_up.count() * self.warm_up > samples - self.warm_up;
        let may_go_on = self.has_risen_before() && is_long || self.has_even_steps();
        if self.class == TrendClass::Level && may_go_on {
            self.class = TrendClass::Unclear;
        }
        self
    }

    /// Three steps up of one height at one distance: a leak in each fifth round of 20, say.
    fn has_even_steps(&self) -> bool {
        let is_even = |values: &[f64]| {
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            values.iter().all(|value| least > 0.75 * value)
        };
        let heights: Vec<f64> = self.steps.iter().map(|step| step.height).collect();
        let pairs = self.steps.windows(2);
        let distances: Vec<f64> = pairs.map(|w| (w[1].index - w[0].index) as f64).collect();
        heights.len() >= 3 && heights[0] > 0.0 && is_even(&heights) && is_even(&distances)
    }

    pub fn width(&self) -> f64 {
        self.slope.high - self.slope.low
    }

    /// Judges the cleaned series by its last regime.
    fn judge(x: &[f64], series: &Series, regime: Regime, material: f64) -> Trend {
        let (from, steps) = (regime.from, regime.steps.iter());
        let steps = steps.map(|step| after(step.index, from..series.y.len()));
        let own = series.shapes.iter().map(|shape| shape[from..].to_vec());
        let shapes: Vec<Vec<f64>> = own.chain(steps).collect();
        let line = Line::beside(&shapes, &series.x[from..], &series.y[from..]);
        let Estimate { value, low, high } = line.slope;
        let warm_up = series.groups[from].start;
        let settled_from = x[warm_up];
        let threshold = material / (x[x.len() - 1] - settled_from);
        let half_width = value - low;
        let is_certain = value.abs() > f64::max(threshold, CERTAINTY * half_width);
        let is_short = x.len() - warm_up < MIN_SETTLED_ROUNDS;
        let is_slowing = regime.is_slowing && low > 0.0;
        // A rise that does not slow down may go on unless growth that matters is excluded.
        let possible = match regime.rise_before > material {
            true => high,
            false => value,
        };
        let class = match () {
            () if is_certain && value < 0.0 => TrendClass::Falling,
            () if is_certain && is_short || is_slowing && value > threshold => {
                TrendClass::WarmingUp
            }
            () if is_certain => TrendClass::Growing,
            () if half_width > OPEN * threshold => TrendClass::Unclear,
            () if possible > threshold && low > 0.0 && !is_slowing => TrendClass::Unclear,
            () => TrendClass::Level,
        };
        let sample_of = |step: &Step| Step {
            index: series.groups[step.index].start,
            ..*step
        };
        Trend {
            class,
            slope: line.slope,
            material,
            threshold,
            settled_from,
            warm_up,
            rise_before: regime.rise_before,
            steps: regime.steps.iter().map(sample_of).collect(),
            line: Some(line),
            groups: series.groups[from..].to_vec(),
            falls: regime.falls,
            noise: series.noise.deviation * series.noise.inflation.sqrt(),
        }
    }

    /// The trend with the slope of a few lows after collections, over the same rounds.
    pub fn with_slope_of_lows(self, slope: Estimate) -> Trend {
        let least = f64::max(self.threshold, CERTAINTY * (slope.value - slope.low));
        Trend {
            class: match slope.value > least {
                true => TrendClass::Growing,
                false => TrendClass::Level,
            },
            slope,
            ..self
        }
    }

    /// The slope of another quantity of the same samples, over the same rounds.
    pub fn slope_of(&self, y: &[f64]) -> f64 {
        let line = self.line.as_ref();
        line.map_or(f64::NAN, |line| line.slope_of(&medians(&self.groups, y)))
    }

    /// The rise before the last regime matters.
    pub fn has_risen_before(&self) -> bool {
        self.rise_before > self.material
    }

    /// `None` for too few rounds.
    pub fn known_slope(&self) -> Option<Estimate> {
        (self.class != TrendClass::TooFewRounds).then_some(self.slope)
    }

    pub fn is_growing(&self) -> bool {
        self.class == TrendClass::Growing
    }
}
