//! Measures the estimator on many synthetic series: how often the interval contains the true slope,
//! how often a series without growth is called growing, and how often growth is found. All seeds are
//! fixed.

use super::random::Random;
use super::synthetic::{self, Setting, ShapeFn};
use super::trend::{Trend, TrendClass};

const SEEDS: u64 = 1000;

/// Rates per thousand series.
struct Rates {
    /// Intervals that contain the true slope, of those series that have an interval.
    covered: u64,
    growing: u64,
}

fn measure(name: &str, shape: ShapeFn, rounds: std::ops::Range<f64>, max_noise: f64) -> Rates {
    let (mut judged, mut covered, mut growing) = (0, 0, 0);
    for seed in 0..SEEDS {
        let mut random = Random::new(7 * seed + 3);
        let mut setting = Setting::draw(&mut random, rounds.clone());
        setting.noise = setting.noise.min(max_noise * setting.level);
        let shape = shape(&setting, &mut random);
        let (x, y) = setting.series(&mut random, &shape);
        let trend = Trend::of(&x, &y, setting.level);
        let (slope, truth) = (&trend.slope, shape.per_round);
        let has_interval = trend.class != TrendClass::TooFewRounds;
        judged += u64::from(has_interval);
        covered += u64::from(has_interval && slope.low <= truth && truth <= slope.high);
        growing += u64::from(trend.is_growing());
    }
    let (covered, growing) = (1000 * covered / judged, 1000 * growing / SEEDS);
    println!(
        "{name}: {judged} judged; of 1000 intervals {covered} contain the true slope, \
         of 1000 series {growing} are called growing"
    );
    Rates { covered, growing }
}

/// At most 0.5 % false alarms, and zero within the interval in 95 % of the series.
fn assert_quiet(name: &str, shape: ShapeFn) {
    for rounds in [5.0..12.0, 12.0..60.0, 60.0..400.0] {
        let name = format!("{name}, {rounds:?} rounds");
        let Rates { covered, growing } = measure(&name, shape, rounds, 1.0);
        assert!(growing <= 5, "{name}: {growing} false alarms");
        assert!(covered >= 950, "{name}: {covered} covered");
    }
}

fn assert_growing(name: &str, shape: ShapeFn, rounds: std::ops::Range<f64>) {
    let Rates { covered, growing } = measure(name, shape, rounds, 1.0);
    assert!(growing >= 970, "{name}: only {growing} found");
    assert!(covered >= 950, "{name}: only {covered} covered");
}

#[test]
fn flat_series_raise_no_alarm() {
    assert_quiet("flat", synthetic::flat);
}

#[test]
fn series_with_a_warm_up_raise_no_alarm() {
    assert_quiet("warm-up", synthetic::warm_up);
}

#[test]
fn series_with_one_step_raise_no_alarm() {
    assert_quiet("one step", synthetic::one_step);
}

#[test]
fn sawtooth_series_raise_no_alarm() {
    assert_quiet("sawtooth", synthetic::sawtooth);
}

/// 20 rounds, with noise of up to 1 % and 0.3 % of the size.
#[test]
fn growth_of_one_percent_per_round_is_found_in_99_of_100_series() {
    let found = measure("one percent", synthetic::one_percent, 20.0..21.0, 0.01);
    assert!(found.growing >= 990 && found.covered >= 950);
    let found = measure(
        "one percent, clean",
        synthetic::one_percent,
        20.0..21.0,
        0.003,
    );
    assert!(found.growing >= 997 && found.covered >= 950);
}

#[test]
fn leaks_are_found() {
    assert_growing("leak", synthetic::leak, 16.0..400.0);
}

#[test]
fn leaks_that_start_late_are_found() {
    assert_growing("late leak", synthetic::late_leak, 24.0..400.0);
}

#[test]
fn staircases_are_found() {
    assert_growing("staircase", synthetic::staircase, 30.0..400.0);
}

#[test]
fn rising_sawteeth_are_found() {
    assert_growing("rising sawtooth", synthetic::rising_sawtooth, 24.0..400.0);
}
