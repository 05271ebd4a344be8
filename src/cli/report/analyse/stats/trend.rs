//! Classifies a series: level, growing, falling, warming up, or unclear.
//!
//! Outliers and bursts are taken out, and the rest is divided into segments by PELT. The last regime
//! decides: the segments at the end that have one slope. Its slope is fitted together with the steps
//! between its segments. A series that swings is judged as a whole, if possible beside its teeth.

use super::cleaned::Cleaned;
use super::line::{Line, Slope};
use super::regime::{Regime, Step, MIN_ROUNDS, MIN_SETTLED_ROUNDS};
use super::teeth::{lows, Lows};
use crate::report::units::MB;

/// Growth is material if it adds this share of the size over all rounds,
const MATERIAL_SHARE: f64 = 0.03;
/// and at least this many bytes. Python allocates 1 MB at once, the kernel up to 2 MB.
pub const MATERIAL_BYTES: f64 = 4.0 * MB;
/// Growth must exceed zero by this multiple of the distance to the 95 % bound, so that false alarms are rare.
const CERTAINTY: f64 = 1.35;

/// Smaller changes are invisible, as a share of the growth that matters.
const RESOLUTION: f64 = 1.0 / 30.0;
/// So many steps down are the ends of teeth.
const MIN_FALLS: usize = 2;

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
    ///
    /// The last regime decides where it is clear. A series that swings has none: there all samples count, with one line
    /// beside the swing, or beside its teeth if that is more exact.
    pub fn of(x: &[f64], y: &[f64], process_size: f64) -> Trend {
        if x.len() < MIN_ROUNDS {
            return Trend::of_few(x);
        }
        let material = material_growth(process_size);
        let resolution = RESOLUTION * material;
        let last_regime = |teeth: Option<Lows>| {
            let mut series = Cleaned::of(x, y, teeth, resolution);
            let regime = Regime::last(&mut series, material);
            Trend::judge(x, series, regime, material)
        };
        let regime = last_regime(None);
        let teeth = lows(x, y, resolution);
        if teeth.is_none() && !regime.swings() && (!regime.is_vague() || regime.is_staircase()) {
            return regime;
        }
        let series = Cleaned::one_line(x, y, resolution);
        let series = series.unwrap_or_else(|| Cleaned::of(x, y, None, resolution));
        let step = Regime::whole(&series);
        let whole = Trend::judge(x, series, step, material);
        let beside_teeth = teeth.map(|teeth| last_regime(Some(teeth)));
        let is_better = |trend: &Trend| !trend.swings() && trend.width() < whole.width();
        let better = beside_teeth.filter(is_better);
        better.or(Some(regime).filter(is_better)).unwrap_or(whole)
    }

    fn of_few(x: &[f64]) -> Trend {
        Trend {
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
        }
    }

    /// True if steps down follow rises, or take back half of the growth: these are no single events.
    fn swings(&self) -> bool {
        let falls = self.steps.iter().map(|step| step.height.min(0.0));
        let falls: Vec<f64> = falls.filter(|height| *height < 0.0).collect();
        let growth = self.slope.per_x * self.settled_x;
        falls.len() >= MIN_FALLS || self.is_growing() && -2.0 * falls.iter().sum::<f64>() > growth
    }

    /// True if bursts or a swing that were not recognized may make the interval wide.
    fn is_vague(&self) -> bool {
        self.class == TrendClass::Unclear || self.width() > 4.0 * self.threshold
    }

    /// True for several steps up alone, which widen the interval, too.
    fn is_staircase(&self) -> bool {
        self.steps.len() > 1 && self.steps.iter().all(|step| step.height > 0.0)
    }

    pub fn width(&self) -> f64 {
        self.slope.high - self.slope.low
    }

    /// Judges the cleaned series by its last regime.
    fn judge(x: &[f64], series: Cleaned, regime: Regime, material: f64) -> Trend {
        let from = regime.from;
        let mut shapes = series.shapes_from(from);
        shapes.extend(regime.shapes_of_steps(series.y.len()));
        let line = Line::beside(&shapes, &series.x[from..], &series.y[from..]);
        let Slope { per_x, low, .. } = line.slope;
        let warm_up = series.starts[from];
        let settled_from = x[warm_up];
        let settled_x = x[x.len() - 1] - settled_from;
        let threshold = material / settled_x;
        let half_width = per_x - low;
        let is_certain = per_x.abs() > f64::max(threshold, CERTAINTY * half_width);
        let is_short = x.len() - warm_up < MIN_SETTLED_ROUNDS;
        let has_ended = regime.is_flat && regime.rise_before > material;
        let class = match () {
            () if is_certain && per_x < 0.0 => TrendClass::Falling,
            () if is_certain && (is_short || regime.is_slowing) => TrendClass::WarmingUp,
            () if is_certain => TrendClass::Growing,
            () if half_width > 10.0 * threshold => TrendClass::Unclear,
            () if has_ended => TrendClass::Level,
            () if per_x > threshold && low > 0.0 => TrendClass::Unclear,
            () => TrendClass::Level,
        };
        let sample_of = |step: &Step| Step {
            index: series.starts[step.index],
            ..*step
        };
        Trend {
            class,
            slope: line.slope,
            threshold,
            settled_from,
            settled_x,
            warm_up,
            rise_before: regime.rise_before,
            steps: regime.steps.iter().map(sample_of).collect(),
            line: Some(line),
            first_group: from,
            series,
        }
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
