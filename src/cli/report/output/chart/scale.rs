//! Maps values to coordinates, and chooses ticks at round numbers.

use crate::report::units::{time_of_day, time_unit, utc, GB, MB};

const DAY: f64 = 86400.0;
/// Round times of day, in seconds.
const CLOCK_STEPS: [f64; 18] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0,
    10800.0, 21600.0, 43200.0, DAY,
];

/// Maps values to places; both are (start, end).
pub fn scale((from, to): (f64, f64), (start, end): (f64, f64)) -> impl Fn(f64) -> f64 {
    let span = match to > from {
        true => to - from,
        false => f64::max(1.0, from.abs() / 1e6),
    };
    move |value| start + ((value - from) / span).clamp(0.0, 1.0) * (end - start)
}

/// The values of an axis.
#[derive(Clone, Copy, Default)]
pub enum Axis {
    Bytes,
    /// Whole numbers of this unit.
    Count(&'static str),
    /// Seconds since the start.
    #[default]
    Elapsed,
    /// Seconds since 1970.
    Clock,
}

impl Axis {
    /// The name of an axis of rounds or times that starts here.
    pub fn name(self, from: f64) -> String {
        match self {
            Axis::Bytes => "memory".to_owned(),
            Axis::Count(unit) => unit.to_owned(),
            Axis::Elapsed => "time".to_owned(),
            Axis::Clock => utc(from, "time of day, UTC, from %F"),
        }
    }

    /// The unit of values up to `to`, and its name.
    fn unit(self, to: f64) -> (f64, &'static str) {
        match self {
            Axis::Bytes if to >= 4.0 * GB => (GB, "GB"),
            Axis::Bytes => (MB, "MB"),
            Axis::Elapsed => time_unit(to),
            Axis::Count(_) | Axis::Clock => (1.0, ""),
        }
    }

    /// A round distance, so that a span that ends at `to` has at most `max` of it.
    fn step(self, span: f64, to: f64, max: f64) -> f64 {
        let (unit, _) = self.unit(to);
        let least = f64::max(span / max / unit, f64::MIN_POSITIVE);
        let of_clock = || CLOCK_STEPS.into_iter().find(|step| *step >= least);
        match self {
            Axis::Bytes | Axis::Elapsed => unit * round_up(least),
            Axis::Count(_) => round_up(least).max(1.0),
            Axis::Clock => of_clock().unwrap_or_else(|| DAY * round_up(least / DAY)),
        }
    }

    /// The round number at which an axis from zero ends that has this value.
    pub fn end(self, high: f64, max: f64) -> f64 {
        let step = self.step(high, high, max);
        (high / step).ceil() * step
    }

    /// At most `max` ticks at round numbers, with their labels.
    pub fn ticks(self, (from, to): (f64, f64), max: f64) -> Vec<(f64, String)> {
        let step = self.step(to - from, to, max);
        let first = (from / step - 1e-9).ceil();
        let count = ((to / step + 1e-9).floor() - first).clamp(0.0, 50.0) as usize;
        let (unit, name) = self.unit(to);
        // They distinguish two neighbouring ticks.
        let decimals = (-(step / unit).log10() - 1e-9).ceil().clamp(0.0, 9.0) as usize;
        let label = |value: f64| match self {
            Axis::Bytes | Axis::Elapsed => format!("{:.decimals$} {name}", value / unit),
            Axis::Count(_) => format!("{value:.0}"),
            Axis::Clock if value.rem_euclid(DAY) == 0.0 => utc(value, "%b %-d"),
            Axis::Clock if step < 60.0 => time_of_day(value),
            Axis::Clock => utc(value, "%H:%M"),
        };
        let values = (0..=count).map(|i| (first + i as f64) * step);
        values.map(|value| (value, label(value))).collect()
    }
}

/// The next of 1, 2 or 5 times a power of ten.
fn round_up(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let mut steps = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power);
    steps.find(|step| *step >= least).unwrap_or(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: Axis = Axis::Count("round");

    fn labels(axis: Axis, from: f64, to: f64, max: f64) -> Vec<String> {
        let ticks = axis.ticks((from, to), max).into_iter();
        ticks.map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_at_round_numbers() {
        for (axis, from, to, max, expected) in [
            (COUNT, 0.0, 100.0, 5.0, "0, 20, 40, 60, 80, 100"),
            (COUNT, 0.0, 2.0, 5.0, "0, 1, 2"),
            (
                Axis::Bytes,
                500.0 * MB,
                1000.0 * MB,
                3.0,
                "600 MB, 800 MB, 1000 MB",
            ),
            (
                Axis::Bytes,
                0.0,
                8.0 * GB,
                4.0,
                "0 GB, 2 GB, 4 GB, 6 GB, 8 GB",
            ),
            (
                Axis::Elapsed,
                0.0,
                5400.0,
                5.0,
                "0 min, 20 min, 40 min, 60 min, 80 min",
            ),
            (
                Axis::Elapsed,
                0.0,
                0.2,
                4.0,
                "0.00 s, 0.05 s, 0.10 s, 0.15 s, 0.20 s",
            ),
        ] {
            assert_eq!(labels(axis, from, to, max).join(", "), expected);
        }
    }

    #[test]
    fn all_labels_of_an_axis_differ() {
        for exponent in -5..9 {
            for span in [1.0, 1.7, 3.0, 6.0, 9.9] {
                let to = span * 10f64.powi(exponent);
                for (axis, to, max) in [
                    (Axis::Bytes, to * MB, 5.0),
                    (Axis::Elapsed, to, 8.0),
                    (COUNT, to, 10.0),
                ] {
                    let all = labels(axis, 0.0, to, max);
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
        let ticks = labels(Axis::Clock, evening, evening + 3600.0, 3.0);
        assert_eq!(ticks.join(", "), "23:30, Nov 21, 00:30");
    }

    #[test]
    fn unusual_ranges_give_a_finite_axis() {
        for (from, to) in [(0.0, 0.0), (5.0, 5.0), (1e18, 1e18), (f64::NAN, f64::NAN)] {
            for axis in [Axis::Bytes, COUNT, Axis::Elapsed, Axis::Clock] {
                assert!(axis.ticks((from, to), 5.0).len() <= 51);
            }
            let place = scale((from, to), (0.0, 10.0))(from);
            assert!(from.is_nan() || place <= 10.0);
        }
    }
}
