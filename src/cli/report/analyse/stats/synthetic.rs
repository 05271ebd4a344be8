//! Synthetic series for tests: a shape with a known slope, plus noise, outliers, gaps and a warm-up.

use super::random::Random;
use crate::report::units::MB;

/// The properties of a series that are independent of its shape.
pub struct Setting {
    pub rounds: f64,
    pub level: f64,
    pub noise: f64,
    /// Autocorrelation of the noise.
    correlation: f64,
    warm_up: f64,
    /// Probability per round.
    outliers: f64,
    /// Probability per round.
    missing: f64,
}

/// A function of the round that is added to the level.
pub struct Shape {
    pub value: Box<dyn Fn(f64) -> f64>,
    /// Its true growth per round.
    pub per_round: f64,
}

impl Shape {
    pub fn new(per_round: f64, value: impl Fn(f64) -> f64 + 'static) -> Shape {
        Shape {
            value: Box::new(value),
            per_round,
        }
    }
}

pub type ShapeFn = fn(&Setting, &mut Random) -> Shape;

impl Setting {
    pub fn draw(random: &mut Random, rounds: std::ops::Range<f64>) -> Self {
        let level = random.between(100.0, 4000.0) * MB;
        let maybe = |random: &mut Random, chance: f64, low: f64, high: f64| {
            let value = random.between(low, high);
            match random.chance(chance) {
                true => value,
                false => 0.0,
            }
        };
        let (few, many) = (rounds.start.ln(), rounds.end.ln());
        Setting {
            level,
            rounds: random.between(few, many).exp().floor(),
            noise: level * 0.0005 * 40f64.powf(random.between(0.0, 1.0)),
            correlation: maybe(random, 0.5, 0.0, 0.6),
            warm_up: level * maybe(random, 0.5, 0.1, 0.7),
            outliers: maybe(random, 0.5, 0.01, 0.011),
            missing: maybe(random, 0.3, 0.1, 0.11),
        }
    }

    /// The rounds and the size in each.
    pub fn series(&self, random: &mut Random, shape: &Shape) -> (Vec<f64>, Vec<f64>) {
        let settle = random.between(0.3, f64::max(self.rounds / 25.0, 0.5));
        let (mut x, mut y, mut noise) = (Vec::new(), Vec::new(), 0.0);
        for i in (0..self.rounds as usize).map(|i| i as f64) {
            noise = self.correlation * noise
                + (1.0 - self.correlation.powi(2)).sqrt() * random.normal();
            let mut outlier = 0.0;
            if random.chance(self.outliers) {
                outlier = random.between(-0.3, 0.6) * self.level;
            }
            let missing_warm_up = self.warm_up * (-i / settle).exp();
            if !random.chance(self.missing) {
                x.push(i);
                y.push(
                    self.level + (shape.value)(i) + self.noise * noise + outlier - missing_warm_up,
                );
            }
        }
        (x, y)
    }

    /// A rise over all rounds that is visible through the noise.
    fn visible(&self, random: &mut Random) -> f64 {
        let of_level = self.level * random.between(0.2, 1.0);
        f64::max(of_level, self.noise * random.between(10.0, 40.0))
    }

    /// The height of a step or of a tooth that is visible through the noise.
    fn tooth(&self, random: &mut Random) -> f64 {
        self.noise * 8.0 + self.level * random.between(0.02, 0.5)
    }
}

pub fn flat(_: &Setting, _: &mut Random) -> Shape {
    Shape::new(0.0, |_| 0.0)
}

/// An exponential warm-up over up to a tenth of all rounds.
pub fn warm_up(setting: &Setting, random: &mut Random) -> Shape {
    let height = setting.level * random.between(0.1, 0.7);
    let settle = setting.rounds * random.between(0.02, 0.08);
    Shape::new(0.0, move |x| -height * (-x / settle).exp())
}

/// A filled cache.
pub fn one_step(setting: &Setting, random: &mut Random) -> Shape {
    let at = setting.rounds * random.between(0.1, 0.9);
    let height = setting.tooth(random);
    Shape::new(0.0, move |x| if x >= at { height } else { 0.0 })
}

pub fn sawtooth(setting: &Setting, random: &mut Random) -> Shape {
    let period = random.between(2.0, setting.rounds / 3.0);
    let (phase, height) = (random.between(0.0, period), setting.tooth(random));
    Shape::new(0.0, move |x| ((x + phase) % period) / period * height)
}

pub fn leak(setting: &Setting, random: &mut Random) -> Shape {
    let per_round = setting.visible(random) / setting.rounds;
    Shape::new(per_round, move |x| per_round * x)
}

/// Growth of 1 % of the level per round.
pub fn one_percent(setting: &Setting, _: &mut Random) -> Shape {
    let per_round = 0.01 * setting.level;
    Shape::new(per_round, move |x| per_round * x)
}

pub fn late_leak(setting: &Setting, random: &mut Random) -> Shape {
    let start = setting.rounds * random.between(0.2, 0.5);
    let per_round = setting.visible(random) / (setting.rounds - start);
    Shape::new(per_round, move |x| per_round * f64::max(x - start, 0.0))
}

/// Steps of varying height at varying distances, over all rounds.
pub fn staircase(setting: &Setting, random: &mut Random) -> Shape {
    let most = f64::min(setting.rounds / 4.0, 20.0).max(6.0);
    let count = random.between(6.0, most + 1.0).floor();
    let height = f64::max(setting.visible(random) / count, 4.0 * setting.noise);
    let one = |i: usize| {
        let at = (i as f64 + random.between(0.3, 0.9)) * setting.rounds / count;
        (at, height * random.between(0.6, 1.4))
    };
    let steps: Vec<(f64, f64)> = (0..count as usize).map(one).collect();
    let all: f64 = steps.iter().map(|(_, height)| height).sum();
    Shape::new(all / setting.rounds, move |x| {
        let passed = steps.iter().filter(|(at, _)| x >= *at);
        passed.map(|(_, height)| height).sum()
    })
}

pub fn rising_sawtooth(setting: &Setting, random: &mut Random) -> Shape {
    let period = random.between(2.0, setting.rounds / 4.5);
    let (phase, height) = (random.between(0.0, period), setting.tooth(random));
    let rise = (1.5 * height + 0.4 * setting.level) * random.between(1.0, 2.0);
    let per_round = rise / setting.rounds;
    Shape::new(per_round, move |x| {
        ((x + phase) % period) / period * height + per_round * x
    })
}
