//! Measures on many synthetic processes how often the verdict is right.

use super::fixtures::{process_and_finding, sample};
use super::judge::tests::verdict_of;
use super::stats::random::Random;
use super::stats::synthetic::{self, Setting, Shape, ShapeFn};
use super::Verdict;
use crate::report::model::{Sample, Size, Sizes};
use crate::report::units::MB;

const SEEDS: u64 = 200;

/// A part of memory that follows a shape, and the verdict if that part grows.
const PARTS: [(Size, Verdict); 4] = [
    (Size::Live, Verdict::LiveGrowth),
    (Size::Retained, Verdict::Retention),
    (Size::File, Verdict::FileBacked),
    (Size::Swap, Verdict::Swap),
];

/// The rounds of a process. Noise and warm-up affect live and retained memory; the shape is added to
/// one part.
fn process(setting: &Setting, random: &mut Random, part: Size, shape: &Shape) -> Vec<Sizes> {
    let constant = Shape::new(0.0, |_| 0.0);
    let (rounds, noisy) = setting.series(random, &constant);
    let level = setting.level;
    let one = |(round, v): (f64, f64)| {
        let noise = v - level;
        let mut sizes = Sizes::UNKNOWN;
        sizes.0[..8].fill(0.0);
        sizes[Size::Live] = 0.6 * level + 0.7 * noise;
        sizes[Size::Retained] = 0.15 * level + 0.2 * noise;
        sizes[Size::Recycled] = 0.05 * level + 0.1 * noise;
        sizes[Size::File] = 0.15 * level;
        sizes[part] += (shape.value)(round);
        let outside = 0.05 * level;
        sizes[Size::Anon] = sizes[Size::Live] + sizes.kept_free() + outside;
        sizes[Size::Rss] = sizes[Size::Anon] + sizes[Size::File];
        sizes
    };
    rounds.into_iter().zip(noisy).map(one).collect()
}

/// The number of right verdicts per thousand processes of this shape.
fn share(
    shape: ShapeFn,
    first_seed: u64,
    is_right: impl Fn(&Setting, &mut Random, &Shape) -> bool,
) -> u64 {
    let one = |seed: &u64| {
        let mut random = Random::new(seed + first_seed);
        let setting = Setting::draw(&mut random, 24.0..200.0);
        let shape = shape(&setting, &mut random);
        is_right(&setting, &mut random, &shape)
    };
    1000 * (0..SEEDS).filter(one).count() as u64 / SEEDS
}

#[test]
fn a_process_without_growth_is_never_called_growing() {
    let (flat, sawtooth) = (synthetic::flat, synthetic::sawtooth);
    for shape_fn in [flat, synthetic::warm_up, synthetic::one_step, sawtooth] {
        for (part, _) in PARTS {
            let right = share(shape_fn, 1000, |setting, random, shape| {
                !verdict_of(process(setting, random, part, shape)).is_growth()
            });
            assert!(right >= 995, "{part:?}: {right}");
        }
    }
}

#[test]
fn a_growing_process_gets_the_verdict_of_the_part_that_grows() {
    for shape_fn in [
        synthetic::leak,
        synthetic::staircase,
        synthetic::rising_sawtooth,
    ] {
        for (part, expected) in PARTS {
            let right = share(shape_fn, 1000, |setting, random, shape| {
                verdict_of(process(setting, random, part, shape)) == expected
            });
            assert!(right >= 960, "{part:?}: {right}");
        }
    }
}

/// The kernel swaps out the bytes of the shape: RSS falls by the amount that swap gains.
fn swapped_out(setting: &Setting, random: &mut Random, shape: &Shape) -> Vec<Sizes> {
    let mut rounds = process(setting, random, Size::Swap, shape);
    for sizes in &mut rounds {
        let out = sizes[Size::Swap];
        sizes[Size::Anon] -= out;
        sizes[Size::Rss] -= out;
    }
    rounds
}

#[test]
fn pages_swapped_out_continuously_are_swap_and_pages_swapped_out_once_are_not() {
    let swaps = |shape_fn: ShapeFn| {
        share(shape_fn, 5000, |setting, random, shape| {
            verdict_of(swapped_out(setting, random, shape)) == Verdict::Swap
        })
    };
    for shape_fn in [synthetic::leak, synthetic::staircase] {
        let found = swaps(shape_fn);
        assert!(found >= 960, "{found}");
    }
    for shape_fn in [synthetic::flat, synthetic::one_step] {
        let alarms = swaps(shape_fn);
        assert!(alarms <= 5, "{alarms}");
    }
}

/// A process with cyclic garbage. A collection every `period` rounds releases most of it.
struct GarbageProcess {
    rounds: usize,
    level: f64,
    period: usize,
    /// Garbage per round.
    height: f64,
    /// The share of the garbage that a collection releases.
    released: f64,
    noise: f64,
    /// Leak per round, as a share of the level.
    leak: f64,
}

impl GarbageProcess {
    fn draw(random: &mut Random, leak: f64) -> GarbageProcess {
        let rounds = random.between(24f64.ln(), 200f64.ln()).exp();
        let level = random.between(200.0, 4000.0) * MB;
        let period = random.between(2.0, rounds / 3.0);
        // The garbage reaches up to 1.5 times the level.
        let tooth = level * random.between(0.02, 1.5);
        GarbageProcess {
            rounds: rounds as usize,
            level,
            period: period as usize,
            height: tooth / period.floor(),
            released: random.between(0.8, 1.0),
            noise: level * random.between(0.0005, 0.01),
            leak,
        }
    }

    fn verdict(&self, random: &mut Random) -> Verdict {
        let mut garbage = 0.0;
        let phase = random.between(0.0, self.period as f64) as usize;
        let marker = |round: usize| {
            let collects = (round + phase).is_multiple_of(self.period);
            let share = if collects { self.released } else { 0.0 };
            let released = garbage * share;
            garbage += self.height - released;
            let live = self.level * (1.0 + self.leak * round as f64) + garbage;
            let live = live + self.noise * random.normal();
            let mut sizes = Sizes::UNKNOWN;
            sizes.0[..8].fill(0.0);
            (sizes[Size::Live], sizes[Size::Anon]) = (live, live + 50.0 * MB);
            sizes[Size::Rss] = sizes[Size::Anon];
            Sample {
                gc_released: released,
                gc_ms: 10.0,
                ..sample(round, sizes)
            }
        };
        process_and_finding((0..self.rounds).map(marker)).1.verdict
    }

    /// The verdicts on a thousand such processes.
    fn verdicts(leak: f64) -> Vec<Verdict> {
        let one = |seed: u64| {
            let mut random = Random::new(seed + 9000);
            GarbageProcess::draw(&mut random, leak).verdict(&mut random)
        };
        (0..1000).map(one).collect()
    }
}

#[test]
fn garbage_without_a_leak_is_called_growth_in_at_most_1_of_200_processes() {
    let verdicts = GarbageProcess::verdicts(0.0);
    let alarms = verdicts.iter().filter(|v| v.is_growth()).count();
    assert!(alarms <= 5, "{alarms}");
}

#[test]
fn a_leak_of_one_percent_below_garbage_is_found_in_98_of_100_processes() {
    let verdicts = GarbageProcess::verdicts(0.01);
    let is_found = |verdict: &&Verdict| **verdict == Verdict::LiveGrowth;
    let found = verdicts.iter().filter(is_found).count();
    assert!(found >= 980, "{found}");
}
