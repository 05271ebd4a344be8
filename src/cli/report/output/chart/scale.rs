//! Maps values to coordinates, and chooses ticks at round numbers.

use crate::report::calendar::{date, time_of_day, utc};
use crate::report::units::{time_unit, GB, MB};

const DAY: f64 = 86400.0;

#[derive(Clone, Copy, Debug)]
pub struct Scale {
    pub from: f64,
    pub to: f64,
    start: f64,
    end: f64,
}

impl Scale {
    /// Maps the values to the places; both are (start, end).
    pub fn new(values: (f64, f64), places: (f64, f64)) -> Self {
        let (from, mut to) = values;
        if to <= from || (to - from).is_nan() {
            to = from + f64::max(1.0, from.abs() / 1e6);
        }
        Scale {
            from,
            to,
            start: places.0,
            end: places.1,
        }
    }

    pub fn place(&self, value: f64) -> f64 {
        let share = ((value - self.from) / (self.to - self.from)).clamp(0.0, 1.0);
        self.start + share * (self.end - self.start)
    }
}

/// The smallest of 1, 2 or 5 times a power of ten that needs at most `max` steps.
fn round_step(span: f64, max: f64) -> f64 {
    let least = f64::max(span / max, f64::MIN_POSITIVE);
    let power = 10f64.powf(least.log10().floor());
    let mut steps = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power);
    steps.find(|step| *step >= least).unwrap_or(least)
}

/// The decimals that distinguish two neighbouring ticks.
fn decimals(step: f64) -> usize {
    (-step.log10() - 1e-9).ceil().clamp(0.0, 9.0) as usize
}

fn multiples(from: f64, to: f64, step: f64) -> Vec<f64> {
    let first = (from / step - 1e-9).ceil();
    let count = ((to / step + 1e-9).floor() - first).clamp(0.0, 50.0) as usize;
    (0..=count).map(|i| (first + i as f64) * step).collect()
}

/// Ticks at round numbers of a unit, with their labels.
fn ticks(from: f64, to: f64, max: f64, (unit, name): (f64, &str)) -> Vec<(f64, String)> {
    let step = round_step((to - from) / unit, max);
    let decimals = decimals(step);
    let label = |v: f64| (v * unit, format!("{v:.decimals$} {name}"));
    let multiples = multiples(from / unit, to / unit, step);
    multiples.into_iter().map(label).collect()
}

/// The unit of a size axis that ends at `to`.
fn size_unit(to: f64) -> (f64, &'static str) {
    match to >= 4.0 * GB {
        true => (GB, "GB"),
        false => (MB, "MB"),
    }
}

/// Ticks of a size axis.
pub fn size_ticks(from: f64, to: f64, max: f64) -> Vec<(f64, String)> {
    ticks(from, to, max, size_unit(to))
}

/// The range of a size axis: round numbers below `low` and above `high`.
pub fn size_range(low: f64, high: f64) -> (f64, f64) {
    let (unit, _) = size_unit(high);
    let step = round_step((high - low).max(0.001 * high) / unit, 5.0) * unit;
    ((low / step).floor() * step, (high / step).ceil() * step)
}

/// The values of the x axis.
pub enum Axis {
    /// Whole numbers of this unit.
    Count(&'static str),
    /// Seconds since the start.
    Elapsed,
    /// Seconds since 1970.
    Clock,
}

impl Axis {
    /// The name of an axis that starts here.
    pub fn name(&self, from: f64) -> String {
        match self {
            Axis::Count(unit) => (*unit).to_owned(),
            Axis::Elapsed => "time".to_owned(),
            Axis::Clock => format!("time of day, UTC, from {}", date(from)),
        }
    }

    /// Ticks whose labels fit into a chart of this width.
    pub fn ticks(&self, (from, to): (f64, f64), width: f64) -> Vec<(f64, String)> {
        match self {
            Axis::Count(_) => count_ticks(from, to, width / 60.0),
            Axis::Elapsed => ticks(from, to, width / 80.0, time_unit(to)),
            Axis::Clock => clock_ticks(from, to, width / 110.0),
        }
    }
}

fn count_ticks(from: f64, to: f64, max: f64) -> Vec<(f64, String)> {
    let step = round_step(to - from, max).max(1.0);
    let label = |v: f64| (v, format!("{v:.0}"));
    multiples(from, to, step).into_iter().map(label).collect()
}

/// Ticks at round times of day; at midnight the date.
fn clock_ticks(from: f64, to: f64, max: f64) -> Vec<(f64, String)> {
    const STEPS: [f64; 18] = [
        1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0,
        10800.0, 21600.0, 43200.0, DAY,
    ];
    let is_wide_enough = |step: &f64| (to - from) / *step <= max;
    let step = STEPS.into_iter().find(is_wide_enough);
    let step = step.unwrap_or_else(|| DAY * round_step((to - from) / DAY, max));
    let label = |t: f64| match () {
        () if t.rem_euclid(DAY) == 0.0 => utc(t, "%b %-d"),
        () if step < 60.0 => time_of_day(t),
        () => utc(t, "%H:%M"),
    };
    let times = multiples(from, to, step).into_iter();
    times.map(|t| (t, label(t))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: Vec<(f64, String)>) -> Vec<String> {
        ticks.into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_at_round_numbers() {
        for (ticks, expected) in [
            (count_ticks(0.0, 100.0, 5.0), "0, 20, 40, 60, 80, 100"),
            (count_ticks(0.0, 2.0, 5.0), "0, 1, 2"),
            (
                size_ticks(500.0 * MB, 1000.0 * MB, 3.0),
                "600 MB, 800 MB, 1000 MB",
            ),
            (
                size_ticks(0.0, 8.0 * GB, 4.0),
                "0 GB, 2 GB, 4 GB, 6 GB, 8 GB",
            ),
            (
                Axis::Elapsed.ticks((0.0, 5400.0), 400.0),
                "0 min, 20 min, 40 min, 60 min, 80 min",
            ),
            (
                Axis::Elapsed.ticks((0.0, 0.2), 320.0),
                "0.00 s, 0.05 s, 0.10 s, 0.15 s, 0.20 s",
            ),
        ] {
            assert_eq!(labels(ticks).join(", "), expected);
        }
    }

    #[test]
    fn all_labels_of_an_axis_differ() {
        for exponent in -5..9 {
            for span in [1.0, 1.7, 3.0, 6.0, 9.9] {
                let to = span * 10f64.powi(exponent);
                let sizes = size_ticks(0.0, to * MB, 5.0);
                let times = Axis::Elapsed.ticks((0.0, to), 640.0);
                for ticks in [times, sizes, count_ticks(0.0, to, 10.0)] {
                    let all = labels(ticks);
                    let mut single = all.clone();
                    single.dedup();
                    assert_eq!(all, single);
                }
            }
        }
    }

    #[test]
    fn ticks_of_the_clock_are_at_round_times_and_midnight_has_the_date() {
        let evening = 1_795_217_400.0; // 2026-11-20 23:30
        let ticks = labels(clock_ticks(evening, evening + 3600.0, 3.0));
        assert_eq!(ticks.join(", "), "23:30, Nov 21, 00:30");
    }

    #[test]
    fn unusual_ranges_give_a_finite_axis() {
        for (from, to) in [(0.0, 0.0), (5.0, 5.0), (1e18, 1e18), (f64::NAN, f64::NAN)] {
            assert!(size_ticks(from, to, 5.0).len() <= 51);
            assert!(count_ticks(from, to, 5.0).len() <= 51);
            let scale = Scale::new((from, to), (0.0, 10.0));
            assert!(from.is_nan() || scale.place(from) <= 10.0);
        }
    }
}
