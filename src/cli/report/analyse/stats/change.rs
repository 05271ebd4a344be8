//! The difference between two runs or two variants, and whether it is beyond noise: for `flarena report --compare` and
//! `flarena compare`.

use std::fmt;

use serde::Serialize;

use super::line::Estimate;

/// A smaller difference counts as noise, however equal the runs are.
const MIN_DIFFERENCE: f64 = 0.01;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Less,
    More,
    WithinNoise,
    /// One run, or fewer than three samples, shows no noise.
    OneRun,
}

/// The ratio of two variants, with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Change {
    pub ratio: f64,
    /// `None` after one run.
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub verdict: Verdict,
}

impl Change {
    /// Compares two means with their intervals.
    pub fn of_means(base: &Estimate, new: &Estimate) -> Self {
        let share = |mean: &Estimate| (mean.high - mean.value) / mean.value;
        let half_width = f64::hypot(share(base), share(new));
        let half_width = Some(half_width).filter(|width| !width.is_nan());
        Change::of((new.value / base.value).ln(), half_width)
    }

    /// Compares two values without intervals. `None` if one of them is unknown or not above zero.
    pub fn of_values(base: f64, new: f64) -> Option<Self> {
        (base > 0.0 && new > 0.0).then(|| Change::of((new / base).ln(), None))
    }

    /// From the difference of the logarithms, and half its interval.
    pub fn of(difference: f64, half_width: Option<f64>) -> Self {
        let is_noise = |width: f64| difference.abs() <= width.max(MIN_DIFFERENCE);
        Change {
            ratio: difference.exp(),
            low: half_width.map(|width| (difference - width).exp()),
            high: half_width.map(|width| (difference + width).exp()),
            verdict: match half_width.map(is_noise) {
                None => Verdict::OneRun,
                Some(true) => Verdict::WithinNoise,
                Some(false) if difference < 0.0 => Verdict::Less,
                Some(false) => Verdict::More,
            },
        }
    }

    /// The difference in percent.
    pub fn percent(&self) -> f64 {
        (self.ratio - 1.0) * 100.0
    }

    /// The distance of the logarithms: half is as large as double.
    pub fn size(&self) -> f64 {
        self.ratio.ln().abs()
    }

    /// `-49 %`: short, however large the number is, like [`certainty`](Self::certainty).
    pub fn amount(&self) -> String {
        const MOST: f64 = 999.0;
        match self.percent().round() {
            percent if percent > MOST => format!(">+{MOST:.0} %"),
            // No sign before zero.
            0.0 => "0 %".to_owned(),
            percent => format!("{percent:+.0} %"),
        }
    }

    /// Half the interval, unless that contains no change at all. `None` without an interval.
    pub fn certainty(&self) -> Option<String> {
        const MOST: f64 = 99.0;
        let (low, high) = (self.low?, self.high?);
        let half_width_percent = (high - low) * 50.0;
        Some(match half_width_percent.round() {
            _ if low <= 1.0 && high >= 1.0 => "not certain".to_owned(),
            width if width <= MOST => format!("±{width:.0} %"),
            _ => format!("±>{MOST:.0} %"),
        })
    }
}

/// `-49 %, ±2 %`, or `-46 %, not certain`.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.amount())?;
        self.certainty()
            .map_or(Ok(()), |certainty| write!(f, ", {certainty}"))
    }
}
