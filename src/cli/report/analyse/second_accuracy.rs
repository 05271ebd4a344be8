//! A second measure of accuracy: shapes, noise and sizes that differ from those of `accuracy`, so that a rule that fits only
//! these is seen. Each class runs without a leak and with one. Prints its table like `accuracy`.

use super::accuracy::{contains, seeds, Row};
use super::findings;
use super::fixtures::{processes, sample, sizes, Random};
use super::stats::quantile;
use super::{Finding, Verdict};
use crate::report::model::Size;
use crate::report::units::MB;

/// The shape over the rounds in MB, without noise and leak.
type Shape = fn(&Series, &mut Random) -> Vec<f64>;

struct Series {
    rounds: usize,
    level: f64,
}

impl Series {
    fn map(&self, value: impl FnMut(f64) -> f64) -> Vec<f64> {
        (0..self.rounds).map(|i| i as f64).map(value).collect()
    }
}

/// Garbage that is collected once it reaches a height. Rounds make more or less of it by this share until the end.
fn teeth(s: &Series, r: &mut Random, drift: f64) -> Vec<f64> {
    let (period, height) = (r.between(3.0, 9.0), s.level * r.between(0.03, 0.3));
    let mut garbage = height * r.between(0.0, 1.0);
    s.map(|x| {
        garbage += height / period * r.between(0.8, 1.2) * (1.0 + drift * x / s.rounds as f64);
        if garbage > height {
            garbage = 0.0;
        }
        garbage
    })
}

const SHAPES: [(&str, Shape); 12] = [
    ("level", |s, _| s.map(|_| 0.0)),
    ("season", |s, r| {
        let (period, height, phase) = (
            r.between(4.0, 13.0),
            s.level * r.between(0.01, 0.12),
            r.between(0.0, 6.0),
        );
        s.map(|x| height * (std::f64::consts::TAU * x / period + phase).sin())
    }),
    ("two levels", |s, r| {
        let (height, often) = (s.level * r.between(0.02, 0.2), r.between(0.15, 0.85));
        let mut is_high = false;
        s.map(|_| {
            is_high ^= r.chance(often);
            if is_high {
                height
            } else {
                0.0
            }
        })
    }),
    ("teeth", |s, r| teeth(s, r, 0.0)),
    ("drifting teeth", |s, r| {
        let drift = r.between(-0.4, 0.8);
        teeth(s, r, drift)
    }),
    ("uneven teeth", |s, r| {
        let (height, often) = (s.level * r.between(0.02, 0.06), r.between(0.1, 0.35));
        let mut garbage = 0.0;
        s.map(|_| {
            garbage += height * r.between(0.3, 1.7);
            if r.chance(often) {
                garbage = 0.0;
            }
            garbage
        })
    }),
    ("slow wander", |s, r| {
        let (memory, step) = (r.between(0.5, 0.85), s.level * r.between(0.002, 0.01));
        let mut at = 0.0;
        s.map(|_| {
            at = memory * at + step * r.normal();
            at
        })
    }),
    ("heavy tails", |s, r| {
        let scale = s.level * r.between(0.002, 0.008);
        s.map(|_| scale * r.normal() / (r.normal().powi(2) + r.normal().powi(2)).sqrt().max(0.05))
    }),
    ("peaks", |s, r| {
        let (height, often) = (s.level * r.between(0.1, 1.0), r.between(0.03, 0.15));
        s.map(|_| {
            if r.chance(often) {
                height * r.between(0.5, 1.5)
            } else {
                0.0
            }
        })
    }),
    ("warm-up", |s, r| {
        let (height, half) = (
            s.level * r.between(0.1, 0.5),
            s.rounds as f64 * r.between(0.01, 0.06),
        );
        s.map(|x| -height * 0.5f64.powf(x / half))
    }),
    ("step", |s, r| {
        let (height, at) = (
            s.level * r.between(0.08, 0.3),
            s.rounds as f64 * r.between(0.15, 0.8),
        );
        s.map(|x| if x > at { height } else { 0.0 })
    }),
    ("noise that grows", |s, r| {
        let (height, end) = (s.level * r.between(0.002, 0.015), s.rounds as f64);
        s.map(|x| height * r.normal() * (0.3 + 1.7 * x / end))
    }),
];

/// A leak: when it grows, its size after each round in rounds, and its growth per round at the end.
const LEAKS: [(&str, Shape, f64); 5] = [
    ("none", |s, _| s.map(|_| 0.0), 0.0),
    ("each round", |s, _| s.map(|x| x), 1.0),
    (
        "one round of six",
        |s, r| {
            let phase = r.between(0.0, 6.0).floor();
            s.map(|x| 6.0 * ((x + phase) / 6.0).floor() - phase)
        },
        1.0,
    ),
    (
        "from a third on",
        |s, _| {
            let start = (s.rounds / 3) as f64;
            s.map(|x| (x - start).max(0.0) * 1.5)
        },
        1.5,
    ),
    (
        "twice as fast from the middle on",
        |s, _| {
            let middle = (s.rounds / 2) as f64;
            s.map(|x| (x + (x - middle).max(0.0)) / 1.5)
        },
        2.0 / 1.5,
    ),
];

/// Shows the finding, and the true growth per round at the end.
fn judge(shape: Shape, leak: usize, seed: u64, mut see: impl FnMut(&Finding, f64)) {
    let mut random = Random::new(977 * seed + 13);
    let series = Series {
        rounds: 30 + random.below(90),
        level: random.between(150.0, 3000.0),
    };
    let values = shape(&series, &mut random);
    let (_, leaked, slope_at_end) = LEAKS[leak];
    let leaked = leaked(&series, &mut random);
    let swing = quantile(&values, 0.95) - quantile(&values, 0.05);
    // A person sees it: more than the swing, and more than matters.
    let total = swing.max(0.1 * series.level) * random.between(1.2, 2.5);
    let growth = total / series.rounds as f64;
    let noise = series.level * random.between(0.0005, 0.004);
    let marker = |round: usize| {
        let live = series.level + values[round] + growth * leaked[round] + noise * random.normal();
        let known = [
            (Size::Live, live),
            (Size::Retained, 20.0),
            (Size::Anon, live + 60.0),
            (Size::Rss, live + 60.0),
            (Size::File, 0.0),
            (Size::Shmem, 0.0),
            (Size::Swap, 0.0),
            (Size::Recycled, 0.0),
        ];
        sample(round, sizes(&known))
    };
    let processes = processes((0..series.rounds).map(marker));
    let findings = findings(&processes, None, |_| true);
    see(&findings[0], slope_at_end * growth * MB);
}

/// With a leak that begins late, the interval of a series that swings may hold the mean growth instead of the last one.
#[test]
fn most_verdicts_are_right_and_intervals_true_for_series_of_other_formulas() {
    let (mut all, mut of_last_leak) = (Row::default(), Row::default());
    let mut alarms = 0;
    for (name, shape) in SHAPES {
        for (leak, (when, ..)) in LEAKS.iter().enumerate() {
            let mut row = Row::default();
            for seed in seeds(1) {
                judge(shape, leak, seed, |finding, truth| {
                    let is_right = match leak {
                        0 => !finding.verdict.is_growth(),
                        _ => finding.verdict == Verdict::LiveGrowth,
                    };
                    alarms += u64::from(leak == 0 && !is_right);
                    row.add(finding, is_right, contains(finding.trend.slope, truth));
                });
            }
            row.print(&format!("{name}, leak: {when}"));
            all.include(&row);
            if leak == LEAKS.len() - 1 {
                of_last_leak.include(&row);
            }
        }
    }
    all.print("all");
    let (right, covered) = all.percent();
    println!("false alarms: {alarms}");
    let quiet = all.series / LEAKS.len() as u64;
    assert!(right > 97.0 && covered > 92.0 && 50 * alarms < quiet);
    // Growth that became faster: the mean of all rounds would hold in 77 of 100.
    assert!(of_last_leak.percent().1 > 88.0);
}
