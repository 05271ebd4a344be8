//! The difference between two runs or two variants, and whether it is beyond noise: for `flarena report --compare` and
//! `flarena compare`.

use std::fmt;

use serde::Serialize;

use super::line::{t_975, Interval};

/// A smaller difference counts as noise, however equal the runs are.
const MIN_DIFFERENCE: f64 = 0.01;

/// Geometric mean and range of one figure over the runs of a variant: the ratio of two means is the [`Change`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    pub mean: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// `None` without a value.
    pub fn of(values: &[f64]) -> Option<Self> {
        let count = values.len() as f64;
        (!values.is_empty()).then(|| Self {
            mean: match Logs::of(values) {
                Some(logs) => logs.mean.exp(),
                // A value of zero has no logarithm, and no ratio either.
                None => values.iter().sum::<f64>() / count,
            },
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }

    /// Half the range, as a share of the mean.
    pub fn share(self) -> f64 {
        (self.max - self.min) / 2.0 / self.mean.max(f64::MIN_POSITIVE)
    }
}

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
    /// Compares the runs of `new` with those of `base` (Welch's interval of the mean logarithms).
    /// `None` if there is no value, or one that is not above zero.
    pub fn between(base: &[f64], new: &[f64]) -> Option<Self> {
        let (base, new) = (Logs::of(base)?, Logs::of(new)?);
        let total = base.squared_error + new.squared_error;
        let part = |logs: &Logs| logs.squared_error.powi(2) / (logs.count as f64 - 1.0);
        // Equal runs have no error; then any number of degrees serves.
        let degrees = (total.powi(2) / (part(&base) + part(&new))).max(1.0);
        let has_runs = base.count > 1 && new.count > 1;
        let half_width = has_runs.then(|| t_975(degrees) * total.sqrt());
        Some(Change::of(new.mean - base.mean, half_width))
    }

    /// Compares two means with their intervals.
    pub fn of_means(base: &Interval, new: &Interval) -> Self {
        let share = |mean: &Interval| (mean.high - mean.value) / mean.value;
        let half_width = f64::hypot(share(base), share(new));
        let half_width = Some(half_width).filter(|width| !width.is_nan());
        Change::of((new.value / base.value).ln(), half_width)
    }

    /// Compares two values without intervals. `None` if one of them is unknown or not above zero.
    pub fn of_values(base: f64, new: f64) -> Option<Self> {
        (base > 0.0 && new > 0.0).then(|| Change::of((new / base).ln(), None))
    }

    /// From the difference of the logarithms, and half its interval.
    fn of(difference: f64, half_width: Option<f64>) -> Self {
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

/// Mean and squared standard error of the logarithms.
struct Logs {
    mean: f64,
    squared_error: f64,
    count: usize,
}

impl Logs {
    fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() || values.iter().any(|value| *value <= 0.0) {
            return None;
        }
        let count = values.len() as f64;
        let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        let mean = logs.iter().sum::<f64>() / count;
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        Some(Self {
            mean,
            squared_error: squares / (count - 1.0).max(1.0) / count,
            count: values.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(base: &[f64], new: &[f64]) -> Verdict {
        Change::between(base, new).unwrap().verdict
    }

    #[test]
    fn a_difference_larger_than_the_spread_is_beyond_noise() {
        let base = [100.0, 101.0, 99.0];
        assert_eq!(verdict(&base, &[50.0, 51.0, 49.0]), Verdict::Less);
        assert_eq!(verdict(&base, &[150.0, 149.0, 151.0]), Verdict::More);
    }

    #[test]
    fn a_difference_within_the_spread_is_noise() {
        assert_eq!(
            verdict(&[100.0, 130.0, 80.0], &[95.0, 120.0, 85.0]),
            Verdict::WithinNoise
        );
        // The spread of one side is enough.
        assert_eq!(
            verdict(&[100.0, 100.0], &[60.0, 99.0]),
            Verdict::WithinNoise
        );
    }

    #[test]
    fn a_difference_below_one_percent_is_noise_even_if_all_runs_are_equal() {
        assert_eq!(verdict(&[100.0; 3], &[100.5; 3]), Verdict::WithinNoise);
        assert_eq!(verdict(&[100.0; 3], &[102.0; 3]), Verdict::More);
    }

    #[test]
    fn after_one_run_there_is_a_ratio_without_an_interval() {
        let change = Change::between(&[100.0], &[50.0, 50.0]).unwrap();
        assert_eq!((change.low, change.verdict), (None, Verdict::OneRun));
        assert!((change.percent() + 50.0).abs() < 1e-9);
    }

    #[test]
    fn the_interval_holds_the_ratio_and_narrows_with_more_runs() {
        let width = |count: usize| {
            let wave = |middle: f64| {
                (0..count)
                    .map(|i| middle + (i % 2) as f64)
                    .collect::<Vec<_>>()
            };
            let change = Change::between(&wave(100.0), &wave(80.0)).unwrap();
            let (low, high) = (change.low.unwrap(), change.high.unwrap());
            assert!(low < change.ratio && change.ratio < high);
            high - low
        };
        assert!(width(2) > 2.0 * width(4));
        assert!(width(4) > width(8));
    }

    #[test]
    fn figures_that_are_missing_or_zero_have_no_ratio() {
        assert_eq!(Change::between(&[], &[1.0]), None);
        assert_eq!(Change::between(&[1.0], &[0.0]), None);
    }

    #[test]
    fn a_spread_has_mean_and_range() {
        let spread = Spread::of(&[50.0, 200.0]).unwrap();
        assert!((spread.mean - 100.0).abs() < 1e-9);
        assert_eq!((spread.min, spread.max), (50.0, 200.0));
        assert!((spread.share() - 0.75).abs() < 1e-9);
        assert_eq!(Spread::of(&[0.0, 10.0]).unwrap().mean, 5.0);
    }

    #[test]
    fn the_sign_of_a_change_is_that_of_the_means() {
        // By arithmetic means the second one is larger.
        let (base, new) = ([100.0, 100.0], [50.0, 160.0]);
        let means = [&base, &new].map(|values| Spread::of(values).unwrap().mean);
        let ratio = Change::between(&base, &new).unwrap().ratio;
        assert!((means[1] / means[0] - ratio).abs() < 1e-9 && ratio < 1.0);
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn a_change_is_shorter_than_a_cell_of_the_table() {
        let between = |base: &[f64], new: &[f64]| Change::between(base, new).unwrap();
        for (base, new, shown) in [
            (
                &[0.001, 0.004][..],
                &[0.03, 0.02][..],
                ">+999 %, not certain",
            ),
            (&[0.001, 0.004], &[0.01, 0.02], "+607 %, not certain"),
            (&[0.01, 0.04], &[0.01, 0.02], "-29 %, not certain"),
            (&[1.0, 1.01], &[8.0, 8.9], "+740 %, ±>99 %"),
            (&[1.0, 1.01], &[20.0, 20.1], ">+999 %, ±97 %"),
            (&[1.0, 1.0], &[1.002, 1.002], "0 %, ±0 %"),
            (&[0.001], &[0.09], ">+999 %"),
        ] {
            let found = between(base, new);
            assert_eq!(found.to_string(), shown);
            let cells = [Some(found.amount()), found.certainty()];
            let mut cells = cells.iter().flatten();
            assert!(cells.all(|cell| cell.chars().count() < 12), "{shown}");
        }
    }
}
