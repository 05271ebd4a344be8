//! The differences between the runs of two variants, and whether they are beyond noise. Pure.

use serde::Serialize;

use crate::report::t_975;

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
    /// One run shows no noise.
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
        let difference = new.mean - base.mean;
        let Some(half_width) = half_width(&base, &new) else {
            return Some(Self {
                ratio: difference.exp(),
                low: None,
                high: None,
                verdict: Verdict::OneRun,
            });
        };
        let is_noise = difference.abs() <= half_width.max(MIN_DIFFERENCE);
        Some(Self {
            ratio: difference.exp(),
            low: Some((difference - half_width).exp()),
            high: Some((difference + half_width).exp()),
            verdict: match is_noise {
                true => Verdict::WithinNoise,
                false if difference < 0.0 => Verdict::Less,
                false => Verdict::More,
            },
        })
    }

    /// The difference in percent.
    pub fn percent(&self) -> f64 {
        (self.ratio - 1.0) * 100.0
    }

    /// True if the interval excludes no change.
    pub fn is_certain(&self) -> bool {
        self.low.is_some_and(|low| low > 1.0) || self.high.is_some_and(|high| high < 1.0)
    }

    /// Half the interval in percentage points.
    pub fn half_width_percent(&self) -> Option<f64> {
        Some((self.high? - self.low?) * 50.0)
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

fn half_width(a: &Logs, b: &Logs) -> Option<f64> {
    if a.count < 2 || b.count < 2 {
        return None;
    }
    let total = a.squared_error + b.squared_error;
    let part = |logs: &Logs| logs.squared_error.powi(2) / (logs.count as f64 - 1.0);
    // Equal runs have no error; then any number of degrees serves.
    let degrees = (total.powi(2) / (part(a) + part(b))).max(1.0);
    Some(t_975(degrees) * total.sqrt())
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
            assert!(change.low.unwrap() < change.ratio && change.ratio < change.high.unwrap());
            change.half_width_percent().unwrap()
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
    fn without_runs_there_is_no_spread() {
        assert_eq!(Spread::of(&[]), None);
    }
}
