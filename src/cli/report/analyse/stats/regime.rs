//! The last regime of a series: the segments at its end that have one slope, with steps between
//! them. It decides the trend, because a rise before it has ended.

use super::bursts::segments_without_bursts;
use super::cleaned::Cleaned;
use super::line::{Known, Line};
use super::robust::median;
use super::segments::Segment;

/// Fewer rounds get no verdict.
pub const MIN_ROUNDS: usize = 5;
/// With fewer rounds after the warm-up, growth looks like the end of the warm-up.
pub const MIN_SETTLED_ROUNDS: usize = 8;
/// A rise that slows down to this share is a warm-up.
const SLOWER: f64 = 0.6;
/// A rise has ended if this share of the series follows it.
const MIN_SHARE_AFTER_RISE: f64 = 0.2;
/// Steps that are closer together are one step. More such steps are a rise.
const MIN_TREAD: usize = 4;
/// So many steps up are growth. Fewer are single events: a filled cache, a second job.
const MIN_STAIRS: usize = 4;

/// A single change of the level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The index of the first sample at the new level.
    pub index: usize,
    pub height: f64,
}

#[derive(Default)]
pub struct Regime {
    /// The first sample.
    pub from: usize,
    pub steps: Vec<Step>,
    /// The rise from the first sample of the series.
    pub rise_before: f64,
    /// The series rose faster before, or at the start of the regime.
    pub is_slowing: bool,
    /// No segment needs a slope.
    pub is_flat: bool,
}

impl Regime {
    /// All samples, with one step if the slow changes of the noise are far too small for it.
    pub fn whole(series: &Cleaned) -> Regime {
        /// The squares that the step explains, in variances of the noise.
        const CERTAIN: f64 = 50.0;
        let n = series.y.len();
        let mut known = Known::constant(n);
        known.add(&series.x);
        let left = known.left_of(&series.y);
        let steps = (MIN_ROUNDS..n.saturating_sub(MIN_ROUNDS)).map(|index| {
            let (height, explained) = known.share_of(&after(index, 0..n), &left);
            (explained, Step { index, height })
        });
        let best = steps.max_by(|a, b| a.0.total_cmp(&b.0));
        let is_certain = |(explained, step): &(f64, Step)| {
            let mut known = known.clone();
            known.add(&after(step.index, 0..n));
            let noise = known.slow_deviation(&series.y).0;
            *explained > CERTAIN * noise.max(series.noise.deviation).powi(2)
        };
        let step = best.filter(is_certain).map(|(_, step)| step);
        Regime {
            steps: step.into_iter().collect(),
            ..Regime::default()
        }
    }

    /// Replaces bursts in the series. A change of less than `material` does not matter.
    pub fn last(series: &mut Cleaned, material: f64) -> Regime {
        if series.y.len() < MIN_SETTLED_ROUNDS {
            return Regime::default();
        }
        let found = segments_without_bursts(series, material);
        let n = series.y.len();
        let last = &found[found.len() - 1];
        let is_long_rise = last.slope != 0.0 && 2 * last.len() >= n;
        if !is_long_rise && rises_everywhere(series, material) {
            return Regime::default();
        }
        let (before, same) = found.split_at(first_of_regime(series, &found, material));
        let (mut from, mut steps) = steps_between(series, same);
        // Steps at the start are a warm-up.
        let begin = usize::max(3, n / 10);
        while steps.first().is_some_and(|step| step.index <= begin) {
            from = steps.remove(0).index;
        }
        let slope = same[0].slope;
        let earlier = before.last().map_or(0.0, |segment| segment.slope);
        let is_slowing = slope > 0.0 && earlier * SLOWER > slope && 2 * (n - from) < n;
        let slows_down = steps.is_empty() && slows_down(&series.x[from..], &series.y[from..]);
        if earlier != 0.0 && n - from > 2 * MIN_SETTLED_ROUNDS {
            // The end of a warm-up still rises a little.
            let skipped = from + same[0].len() / 2;
            if steps.first().is_none_or(|step| step.index > skipped) {
                from = skipped;
            }
        }
        steps.retain(|step| step.height.abs() > material);
        let deciding = found.iter().find(|segment| segment.to > from);
        let level = deciding.map_or(0.0, |segment| segment.value_at(series.x[from]));
        let ups = steps.iter().filter(|step| step.height > 0.0).count();
        let is_staircase = ups >= MIN_STAIRS && ups > 2 * (steps.len() - ups);
        if is_staircase {
            steps.clear();
        }
        Regime {
            from,
            steps,
            rise_before: if from > 0 { level - series.first } else { 0.0 },
            is_slowing: is_slowing || slows_down,
            is_flat: !is_staircase && same.iter().all(|segment| segment.slope == 0.0),
        }
    }

    /// A shape for each step.
    pub fn shapes_of_steps(&self, samples: usize) -> impl Iterator<Item = Vec<f64>> + '_ {
        let shape = move |step: &Step| after(step.index, self.from..samples);
        self.steps.iter().map(shape)
    }
}

/// 0 before a sample, and 1 from it on.
fn after(index: usize, samples: std::ops::Range<usize>) -> Vec<f64> {
    samples
        .map(|sample| f64::from(u8::from(sample >= index)))
        .collect()
}

/// The first segment at the end of the series that has the same slope as the last ones.
fn first_of_regime(series: &Cleaned, found: &[Segment], material: f64) -> usize {
    let is_flat = |s: &Segment| {
        let rise = s.slope * (series.x[s.to - 1] - series.x[s.from]);
        rise.abs() < material
    };
    let is_short = |s: &Segment| s.len() < MIN_ROUNDS;
    let share = MIN_SHARE_AFTER_RISE * series.y.len() as f64;
    let min_length = usize::max(MIN_ROUNDS, share as usize);
    let mut first = found.len() - 1;
    let mut deciding = found[first];
    let mut length = 0;
    while first > 0 {
        let before = &found[first - 1];
        length += found[first].len();
        let may_go_on = length < min_length && (is_short(&deciding) || before.slope != 0.0);
        let is_same = match (is_flat(before), is_flat(&deciding)) {
            (true, true) => true,
            _ if may_go_on => true,
            (false, false) => {
                let ratio = before.slope / deciding.slope;
                SLOWER < ratio && ratio < 1.0 / SLOWER
            }
            (true, false) | (false, true) => is_short(before) && before.from > 0,
        };
        if !is_same {
            break;
        }
        first -= 1;
        if !is_short(before) {
            deciding = *before;
        }
    }
    first
}

/// The first sample after a rise in many short steps, and the steps after it.
fn steps_between(series: &Cleaned, found: &[Segment]) -> (usize, Vec<Step>) {
    let n = series.y.len();
    let mut from = found[0].from;
    let mut steps: Vec<Step> = Vec::new();
    let mut joined = 0;
    for pair in found.windows(2) {
        let (left, right) = (&pair[0], &pair[1]);
        let at = series.x[right.from];
        let height = right.value_at(at) - left.value_at(at);
        let is_close = left.len() < MIN_TREAD;
        let previous = steps.last_mut().filter(|step| step.height * height > 0.0);
        match previous.filter(|_| is_close) {
            Some(_) if joined > 0 && 3 * (n - right.from) > n => {
                steps.clear();
                from = right.from;
            }
            Some(step) => {
                step.height += height;
                joined += 1;
            }
            None => {
                joined = 0;
                let index = right.from;
                steps.push(Step { index, height });
            }
        }
    }
    (from, steps)
}

/// True if each quarter of the series rises by about as much: steady growth, or many steps.
fn rises_everywhere(series: &Cleaned, material: f64) -> bool {
    let n = series.y.len();
    if n < 2 * MIN_ROUNDS {
        return false;
    }
    let half = usize::clamp(n / 24, 1, 5);
    let level = |quarter: usize| {
        let middle = (quarter * (n - 1) / 4).clamp(half, n - 1 - half);
        median(&series.y[middle - half..=middle + half])
    };
    let levels: Vec<f64> = (0..=4).map(level).collect();
    let rises: Vec<f64> = levels.windows(2).map(|w| w[1] - w[0]).collect();
    let least = rises.iter().copied().fold(f64::INFINITY, f64::min);
    let most = rises.iter().copied().fold(0.0, f64::max);
    let noise = series.noise.deviation * (series.noise.inflation() / (2 * half + 1) as f64).sqrt();
    let is_visible = least > f64::max(material / 8.0, 2.5 * noise);
    is_visible && most < 3.0 * least
}

/// True if the later half rises much more slowly than the earlier half.
fn slows_down(x: &[f64], y: &[f64]) -> bool {
    let half = y.len() / 2;
    if half < MIN_ROUNDS {
        return false;
    }
    let early = Line::through(&x[..half], &y[..half]).slope;
    let late = Line::through(&x[half..], &y[half..]).slope;
    let tolerance = (early.high - early.low + late.high - late.low) / 4.0;
    late.per_x < SLOWER * early.per_x && late.per_x + tolerance < early.per_x
}
