//! One figure over the runs of a variant: its mean and range, and its change against another variant.

use serde::Serialize;

use crate::report::{t_975, Change};

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

/// Compares the runs of `new` with those of `base` (Welch's interval of the mean logarithms).
/// `None` if there is no value, or one that is not above zero.
pub fn change(base: &[f64], new: &[f64]) -> Option<Change> {
    let (base, new) = (Logs::of(base)?, Logs::of(new)?);
    let total = base.squared_error + new.squared_error;
    let part = |logs: &Logs| logs.squared_error.powi(2) / (logs.count as f64 - 1.0);
    // Equal runs have no error; then any number of degrees serves.
    let degrees = (total.powi(2) / (part(&base) + part(&new))).max(1.0);
    let has_runs = base.count > 1 && new.count > 1;
    let half_width = has_runs.then(|| t_975(degrees) * total.sqrt());
    Some(Change::of(new.mean - base.mean, half_width))
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
    use crate::report::ChangeVerdict as Verdict;

    fn verdict(base: &[f64], new: &[f64]) -> Verdict {
        change(base, new).unwrap().verdict
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
        let change = change(&[100.0], &[50.0, 50.0]).unwrap();
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
            let change = change(&wave(100.0), &wave(80.0)).unwrap();
            let (low, high) = (change.low.unwrap(), change.high.unwrap());
            assert!(low < change.ratio && change.ratio < high);
            high - low
        };
        assert!(width(2) > 2.0 * width(4));
        assert!(width(4) > width(8));
    }

    #[test]
    fn figures_that_are_missing_or_zero_have_no_ratio() {
        assert_eq!(change(&[], &[1.0]), None);
        assert_eq!(change(&[1.0], &[0.0]), None);
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
        let ratio = change(&base, &new).unwrap().ratio;
        assert!((means[1] / means[0] - ratio).abs() < 1e-9 && ratio < 1.0);
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn a_change_is_shorter_than_a_cell_of_the_table() {
        let between = |base: &[f64], new: &[f64]| change(base, new).unwrap();
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
