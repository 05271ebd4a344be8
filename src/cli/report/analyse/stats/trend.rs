//! Classifies a series: level, growing, falling, warming up, or unclear.
//!
//! Teeth, outliers and bursts are taken out, and the rest is divided into segments by PELT. The last
//! regime decides: the segments at the end that have one slope. Its slope is fitted without the
//! steps between its segments.

use super::cleaned::Cleaned;
use super::line::{Line, Slope};
use super::regime::{Regime, Step, MIN_ROUNDS, MIN_SETTLED_ROUNDS};
use super::teeth::{lows, Lows};
use crate::report::units::MB;

/// Growth is material if it adds this share of the size over all rounds,
const MATERIAL_SHARE: f64 = 0.03;
/// and at least this many bytes. Python allocates 1 MB at once, the kernel up to 2 MB.
pub const MATERIAL_BYTES: f64 = 4.0 * MB;
/// Growth must exceed zero by this multiple of the distance to the 95 % bound, which makes a false
/// alarm as rare as 1 in 1000.
const CERTAINTY: f64 = 1.6;

/// Smaller changes are invisible, as a share of the growth that matters.
const RESOLUTION: f64 = 1.0 / 30.0;
/// So many steps down are the ends of teeth.
const MIN_FALLS: usize = 2;
/// Teeth must explain all but this share of the deviation.
const MAX_UNEXPLAINED: f64 = 0.6;

/// The growth over all rounds that matters for a process of this size.
pub fn material_growth(size: f64) -> f64 {
    f64::max(MATERIAL_SHARE * size, MATERIAL_BYTES)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrendClass {
    TooFewRounds,
    Level,
    /// Neither growth nor its absence is certain.
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
    /// The growth per x that matters.
    pub threshold: f64,
    /// The first x of the last regime.
    pub settled_from: f64,
    /// Its length on the axis.
    settled_x: f64,
    /// Number of samples before it: a warm-up, or growth that ended.
    pub warm_up: usize,
    /// The rise from the first sample to the last regime.
    pub rise_before: f64,
    /// The steps within the last regime.
    pub steps: Vec<Step>,
    line: Option<Line>,
    series: Cleaned,
    /// The first group of the last regime.
    first_group: usize,
}

impl Trend {
    /// `x` ascends strictly. `process_size` determines the growth that matters.
    pub fn of(x: &[f64], y: &[f64], process_size: f64) -> Trend {
        let material = material_growth(process_size);
        let mut trend = Trend {
            class: TrendClass::TooFewRounds,
            slope: Slope::default(),
            threshold: f64::INFINITY,
            settled_from: x.first().copied().unwrap_or(0.0),
            settled_x: 0.0,
            warm_up: 0,
            rise_before: 0.0,
            steps: Vec::new(),
            line: None,
            series: Cleaned::default(),
            first_group: 0,
        };
        if x.len() < MIN_ROUNDS {
            return trend;
        }
        let resolution = RESOLUTION * material;
        let teeth = lows(x, y, resolution);
        let mut swings = teeth.is_some();
        let mut series = Cleaned::of(x, y, teeth, resolution);
        let regime = Regime::last(&mut series, material);
        let falls = trend.judge(x, series, regime, material);
        // Steps down between rises are no events.
        let has_teeth = falls.len() >= MIN_FALLS || trend.rise_is_undone();
        if has_teeth {
            trend.class = TrendClass::Unclear;
        }
        swings |= trend.class == TrendClass::Unclear;
        // Bursts that were not recognized make the interval wide.
        if swings || trend.width() > 4.0 * trend.threshold {
            let mut width = if has_teeth {
                f64::INFINITY
            } else {
                trend.width()
            };
            let teeth = has_teeth.then(|| Lows::between(x, y, falls)).flatten();
            let explained = teeth.filter(|teeth| {
                let left = |y: &[f64]| Line::through(x, y).residual_deviation(x, y);
                left(&teeth.y) < MAX_UNEXPLAINED * left(y)
            });
            let without_teeth = explained.map(|teeth| Cleaned::of(x, y, Some(teeth), resolution));
            let lows = swings.then(|| Cleaned::lows(x, y, resolution)).flatten();
            let one_line = Cleaned::one_line(x, y, resolution);
            let mut others = Vec::new();
            for mut series in without_teeth.into_iter().chain(lows).chain(one_line) {
                let regime = Regime::last(&mut series, material);
                others.push((series, regime));
            }
            if has_teeth {
                others.push((Cleaned::of(x, y, None, resolution), Regime::default()));
            }
            for (series, regime) in others {
                let mut other = trend.clone();
                let falls = other.judge(x, series, regime, material);
                let is_valid = falls.len() < MIN_FALLS && !other.rise_is_undone();
                if is_valid && other.width() < width {
                    width = other.width();
                    trend = other;
                }
            }
        }
        trend
    }

    /// True if steps down take back half of the growth.
    fn rise_is_undone(&self) -> bool {
        let falls = self.steps.iter().map(|step| step.height.min(0.0));
        self.is_growing() && -2.0 * falls.sum::<f64>() > self.slope.per_x * self.settled_x
    }

    pub fn width(&self) -> f64 {
        self.slope.high - self.slope.low
    }

    /// Judges the cleaned series. Returns the first samples after steps down.
    fn judge(&mut self, x: &[f64], series: Cleaned, regime: Regime, material: f64) -> Vec<usize> {
        let from = regime.from;
        let shapes = series.shapes_from(from);
        let line = Line::beside(&shapes, &series.x[from..], &regime.without_steps(&series));
        let Slope { per_x, low, .. } = line.slope;
        self.slope = line.slope;
        self.line = Some(line);
        self.first_group = from;
        self.warm_up = series.starts[from];
        self.settled_from = x[self.warm_up];
        self.rise_before = regime.rise_before;
        self.settled_x = x[x.len() - 1] - self.settled_from;
        self.threshold = material / self.settled_x;
        let half_width = per_x - low;
        let is_certain = per_x.abs() > f64::max(self.threshold, CERTAINTY * half_width);
        let is_short = x.len() - self.warm_up < MIN_SETTLED_ROUNDS;
        // So few lows may rise by chance.
        let has_few_lows = series.x.len() < x.len() && series.x.len() - from < MIN_SETTLED_ROUNDS;
        let has_ended = regime.is_flat && regime.rise_before > material;
        self.class = match () {
            () if is_certain && has_few_lows => TrendClass::Unclear,
            () if is_certain && per_x < 0.0 => TrendClass::Falling,
            () if is_certain && (is_short || regime.is_slowing) => TrendClass::WarmingUp,
            () if is_certain => TrendClass::Growing,
            () if half_width > 10.0 * self.threshold => TrendClass::Unclear,
            () if has_ended => TrendClass::Level,
            () if per_x > self.threshold && low > 0.0 => TrendClass::Unclear,
            () => TrendClass::Level,
        };
        let sample_of = |step: &Step| Step {
            index: series.starts[step.index],
            ..*step
        };
        self.steps = regime.steps.iter().map(sample_of).collect();
        self.series = series;
        let falls = self.steps.iter().filter(|step| step.height < 0.0);
        falls.map(|step| step.index).collect()
    }

    /// The trend with the slope of a few lows after collections, over the same rounds.
    pub fn with_slope_of_lows(self, slope: Slope) -> Trend {
        let half_width = slope.per_x - slope.low;
        let least = f64::max(self.threshold, CERTAINTY * half_width);
        Trend {
            class: match slope.per_x {
                rise if rise > least => TrendClass::Growing,
                fall if fall < -least => TrendClass::Falling,
                _ => TrendClass::Level,
            },
            slope,
            ..self
        }
    }

    /// The trend, if so many samples with this rise came before its series.
    pub fn after(self, samples: usize, rise: f64) -> Trend {
        Trend {
            warm_up: self.warm_up + samples,
            rise_before: self.rise_before + rise,
            ..self
        }
    }

    /// The trend of some samples of a series, whose settled part begins at this sample.
    pub fn starting_at(self, sample: usize) -> Trend {
        Trend {
            warm_up: if self.warm_up == 0 { 0 } else { sample },
            steps: Vec::new(),
            ..self
        }
    }

    /// The slope of another quantity of the same samples, over the same rounds.
    pub fn slope_of(&self, y: &[f64]) -> f64 {
        let line = self.line.as_ref();
        line.map_or(f64::NAN, |line| {
            line.slope_of(&self.series.same_of(y)[self.first_group..])
        })
    }

    /// The growth that matters over the last regime.
    pub fn threshold_in_total(&self) -> f64 {
        self.threshold * self.settled_x
    }

    /// The rise before the last regime matters.
    pub fn has_risen_before(&self) -> bool {
        self.rise_before > self.threshold_in_total()
    }

    /// `None` for too few rounds.
    pub fn known_slope(&self) -> Option<Slope> {
        (self.class != TrendClass::TooFewRounds).then_some(self.slope)
    }

    pub fn is_growing(&self) -> bool {
        self.class == TrendClass::Growing
    }
}
