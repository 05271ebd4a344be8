//! Series whose truth is known: the accuracy of the decision, measured over many seeds.

use super::random::Random;
use super::trend::{Course, Trend};

const MIB: f64 = 1024.0 * 1024.0;
const SEEDS: u64 = 1000;

/// What every series has beside its form: length, level, noise, outliers, and perhaps a warm-up.
pub struct Setting {
    pub rounds: usize,
    pub level: f64,
    pub noise: f64,
    memory: f64,
    warm_up: f64,
}

impl Setting {
    pub fn draw(random: &mut Random) -> Self {
        let level = random.between(100.0, 4000.0) * MIB;
        Setting {
            rounds: random.between(30.0, 400.0) as usize,
            level,
            noise: level * random.between(0.001, 0.02),
            memory: if random.chance(0.5) {
                random.between(0.0, 0.6)
            } else {
                0.0
            },
            warm_up: if random.chance(0.5) {
                level * random.between(0.1, 0.7)
            } else {
                0.0
            },
        }
    }

    /// The form, with noise that may resemble its predecessor, outliers, and a climb at the start.
    pub fn series(&self, random: &mut Random, form: impl Fn(f64) -> f64) -> Vec<f64> {
        let settle = random.between(0.5, self.rounds as f64 / 25.0);
        let mut noise = 0.0;
        (0..self.rounds)
            .map(|i| {
                let fresh = (1.0 - self.memory * self.memory).sqrt() * random.normal();
                noise = self.memory * noise + fresh;
                let outlier = if random.chance(0.01) {
                    random.between(-0.3, 0.6) * self.level
                } else {
                    0.0
                };
                let climb = self.warm_up * (-(i as f64) / settle).exp();
                self.level + form(i as f64) + self.noise * noise + outlier - climb
            })
            .collect()
    }
}

/// The rise over the whole series that a careful person would see through the noise.
pub fn visible_rise(setting: &Setting, random: &mut Random) -> f64 {
    f64::max(
        setting.noise * random.between(6.0, 60.0),
        setting.level * random.between(0.02, 1.0),
    )
}

/// The form and whether it grows.
pub type Form = Box<dyn Fn(f64) -> f64>;

pub fn flat(_: &Setting, _: &mut Random) -> Form {
    Box::new(|_| 0.0)
}

pub fn leaking(setting: &Setting, random: &mut Random) -> Form {
    let per_round = visible_rise(setting, random) / setting.rounds as f64;
    Box::new(move |x| per_round * x)
}

/// Jumps of changing height at changing distances, all along.
pub fn stepping(setting: &Setting, random: &mut Random) -> Form {
    let rounds = setting.rounds as f64;
    let count = random
        .between(4.0, f64::min(20.0, rounds / 4.0) + 1.0)
        .floor();
    let height = f64::max(visible_rise(setting, random) / count, 4.0 * setting.noise);
    let jumps: Vec<(f64, f64)> = (0..count as usize)
        .map(|i| {
            let at = (i as f64 + random.between(0.3, 0.9)) * rounds / count;
            (at, height * random.between(0.6, 1.4))
        })
        .collect();
    Box::new(move |x| {
        jumps
            .iter()
            .filter(|(at, _)| x >= *at)
            .map(|(_, h)| h)
            .sum()
    })
}

/// One jump, then level for long: a cache that was filled, not a leak.
pub fn one_jump(setting: &Setting, random: &mut Random) -> Form {
    let at = setting.rounds as f64 * random.between(0.1, 0.7);
    let height = setting.noise * 4.0 + setting.level * random.between(0.02, 0.5);
    Box::new(move |x| if x >= at { height } else { 0.0 })
}

pub fn sawtooth(setting: &Setting, random: &mut Random) -> Form {
    teeth(setting, random, 3.5)
}

fn teeth(setting: &Setting, random: &mut Random, least: f64) -> Form {
    let period = random.between(3.0, setting.rounds as f64 / least);
    let phase = random.between(0.0, period);
    let height = setting.noise * 8.0 + setting.level * random.between(0.02, 0.5);
    Box::new(move |x| ((x + phase) % period) / period * height)
}

pub fn rising_sawtooth(setting: &Setting, random: &mut Random) -> Form {
    let teeth = teeth(setting, random, 4.5);
    let share = random.between(0.6, 2.0);
    let rise = share * (setting.noise * 14.0 + setting.level * 0.5) / setting.rounds as f64;
    Box::new(move |x| teeth(x) + rise * x)
}

type Maker = fn(&Setting, &mut Random) -> Form;

fn share_right(make: Maker, right: fn(&Trend) -> bool) -> f64 {
    let right = (0..SEEDS).filter(|&seed| {
        let mut random = Random::new(seed);
        let setting = Setting::draw(&mut random);
        let form = make(&setting, &mut random);
        let y = setting.series(&mut random, form);
        let x: Vec<f64> = (0..y.len()).map(|i| i as f64).collect();
        let trend = Trend::of(&x, &y);
        let right = right(&trend);
        if !right && std::env::var_os("FLARENA_TEST_WRONG").is_some() {
            eprintln!("seed {seed}: {} rounds, {trend:?}", setting.rounds);
        }
        right
    });
    right.count() as f64 / SEEDS as f64
}

fn assert_right(name: &str, make: Maker, right: fn(&Trend) -> bool) {
    let share = share_right(make, right);
    println!("{name}: {:.2} % of {SEEDS} right", 100.0 * share);
    assert!(share >= 0.99, "{name}: only {:.2} % right", 100.0 * share);
}

fn level(trend: &Trend) -> bool {
    matches!(trend.course, Course::Level | Course::Falling)
}

#[test]
fn noisy_level_series_are_called_level() {
    assert_right("flat", flat, level);
}

#[test]
fn leaking_series_are_called_growing() {
    assert_right("leaking", leaking, Trend::is_growing);
}

#[test]
fn stepping_series_are_called_growing() {
    assert_right("stepping", stepping, Trend::is_growing);
}

#[test]
fn series_that_jumped_once_are_called_level() {
    assert_right("one jump", one_jump, level);
}

#[test]
fn sawtooth_series_are_called_level() {
    assert_right("sawtooth", sawtooth, level);
}

#[test]
fn rising_sawtooth_series_are_called_growing() {
    assert_right("rising sawtooth", rising_sawtooth, Trend::is_growing);
}
