//! Series whose truth is known: a form, and what every series has beside it.

use super::random::Random;
use crate::report::units::MB;

/// Length, level, noise that may resemble its predecessor, outliers, missing rounds, a warm-up.
pub struct Setting {
    pub rounds: f64,
    pub level: f64,
    pub noise: f64,
    memory: f64,
    warm_up: f64,
    outliers: f64,
    missing: f64,
}

/// What is added to the level, and its true growth per round.
pub struct Form(pub Box<dyn Fn(f64) -> f64>, pub f64);

pub type Maker = fn(&Setting, &mut Random) -> Form;

impl Setting {
    pub fn draw(random: &mut Random, rounds: std::ops::Range<f64>) -> Self {
        let level = random.between(100.0, 4000.0) * MB;
        let some = |random: &mut Random, chance: f64, low: f64, high: f64| {
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
            memory: some(random, 0.5, 0.0, 0.6),
            warm_up: level * some(random, 0.5, 0.1, 0.7),
            outliers: some(random, 0.5, 0.01, 0.011),
            missing: some(random, 0.3, 0.1, 0.11),
        }
    }

    /// Rounds and sizes.
    pub fn series(&self, random: &mut Random, form: &Form) -> (Vec<f64>, Vec<f64>) {
        let settle = random.between(0.3, f64::max(self.rounds / 25.0, 0.5));
        let (mut x, mut y, mut noise) = (Vec::new(), Vec::new(), 0.0);
        for i in (0..self.rounds as usize).map(|i| i as f64) {
            noise = self.memory * noise + (1.0 - self.memory.powi(2)).sqrt() * random.normal();
            let mut outlier = 0.0;
            if random.chance(self.outliers) {
                outlier = random.between(-0.3, 0.6) * self.level;
            }
            let climb = self.warm_up * (-i / settle).exp();
            if !random.chance(self.missing) {
                x.push(i);
                y.push(self.level + form.0(i) + self.noise * noise + outlier - climb);
            }
        }
        (x, y)
    }

    /// The rise over all rounds that a careful person sees through the noise.
    fn visible(&self, random: &mut Random) -> f64 {
        let of_level = self.level * random.between(0.2, 1.0);
        f64::max(of_level, self.noise * random.between(10.0, 40.0))
    }

    fn tooth(&self, random: &mut Random) -> f64 {
        self.noise * 8.0 + self.level * random.between(0.02, 0.5)
    }
}

pub fn flat(_: &Setting, _: &mut Random) -> Form {
    Form(Box::new(|_| 0.0), 0.0)
}

/// A warm-up of up to a tenth of all rounds.
pub fn warm_up(setting: &Setting, random: &mut Random) -> Form {
    let height = setting.level * random.between(0.1, 0.7);
    let settle = setting.rounds * random.between(0.02, 0.08);
    Form(Box::new(move |x| -height * (-x / settle).exp()), 0.0)
}

/// A cache that was filled, not a leak.
pub fn one_step(setting: &Setting, random: &mut Random) -> Form {
    let at = setting.rounds * random.between(0.1, 0.9);
    let height = setting.tooth(random);
    Form(Box::new(move |x| if x >= at { height } else { 0.0 }), 0.0)
}

pub fn sawtooth(setting: &Setting, random: &mut Random) -> Form {
    let period = random.between(2.0, setting.rounds / 3.0);
    let (phase, height) = (random.between(0.0, period), setting.tooth(random));
    let form = move |x: f64| ((x + phase) % period) / period * height;
    Form(Box::new(form), 0.0)
}

pub fn leak(setting: &Setting, random: &mut Random) -> Form {
    let per_round = setting.visible(random) / setting.rounds;
    Form(Box::new(move |x| per_round * x), per_round)
}

/// A hundredth of the level each round.
pub fn one_percent(setting: &Setting, _: &mut Random) -> Form {
    let per_round = 0.01 * setting.level;
    Form(Box::new(move |x| per_round * x), per_round)
}

pub fn late_leak(setting: &Setting, random: &mut Random) -> Form {
    let start = setting.rounds * random.between(0.2, 0.5);
    let per_round = setting.visible(random) / (setting.rounds - start);
    let form = move |x: f64| per_round * f64::max(x - start, 0.0);
    Form(Box::new(form), per_round)
}

/// Steps of changing height at changing distances, all along.
pub fn staircase(setting: &Setting, random: &mut Random) -> Form {
    let most = f64::min(setting.rounds / 4.0, 20.0).max(6.0);
    let count = random.between(6.0, most + 1.0).floor();
    let height = f64::max(setting.visible(random) / count, 4.0 * setting.noise);
    let one = |i: usize| {
        let at = (i as f64 + random.between(0.3, 0.9)) * setting.rounds / count;
        (at, height * random.between(0.6, 1.4))
    };
    let steps: Vec<(f64, f64)> = (0..count as usize).map(one).collect();
    let all: f64 = steps.iter().map(|(_, height)| height).sum();
    let climbed = move |x: f64| {
        let passed = steps.iter().filter(|(at, _)| x >= *at);
        passed.map(|(_, height)| height).sum()
    };
    Form(Box::new(climbed), all / setting.rounds)
}

pub fn rising_sawtooth(setting: &Setting, random: &mut Random) -> Form {
    let period = random.between(2.0, setting.rounds / 4.5);
    let (phase, height) = (random.between(0.0, period), setting.tooth(random));
    let rise = (1.5 * height + 0.4 * setting.level) * random.between(1.0, 2.0);
    let per_round = rise / setting.rounds;
    let form = move |x: f64| ((x + phase) % period) / period * height + per_round * x;
    Form(Box::new(form), per_round)
}
