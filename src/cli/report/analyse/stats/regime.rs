//! The last regime of a series: the segments at its end that have one slope, with steps between
//! them. It decides the trend, because a rise before it has ended. A series without such segments has one bend or one
//! step at most.

use std::ops::Range;

use super::line::{Known, Line};
use super::robust::median;
use super::segments::Segment;
use super::series::Series;

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

/// A step at a sample: 0 before it, and 1 from it on.
pub fn after(index: usize, samples: Range<usize>) -> Vec<f64> {
    let shape = samples.map(|sample| f64::from(u8::from(sample >= index)));
    shape.collect()
}

#[derive(Default)]
pub struct Regime {
    /// The first sample.
    pub from: usize,
    pub steps: Vec<Step>,
    /// The rise from the first sample of the series.
    pub rise_before: f64,
    /// The series rose much faster before, or at the start of the regime.
    pub is_slowing: bool,
    /// Steps down in the whole series, which `last` counts.
    pub falls: usize,
}

impl Regime {
    /// All samples with one step, or those after one bend, if the slow changes of the noise are far too small for it.
    pub fn whole(series: &Series, material: f64) -> Regime {
        /// The squares that a step or bend explains, in variances of the noise.
        const CERTAIN_STEP: f64 = 50.0;
        const CERTAIN_BEND: f64 = 20.0;
        let (x, y, n) = (&series.x, &series.y, series.y.len());
        let mut line = Known::constant(n);
        line.add(x);
        let left = line.left_of(y);
        // The shape that explains most, if it leaves so many samples after it, and its squares in variances.
        let best = |least_after: usize, shape: &dyn Fn(usize) -> Vec<f64>, least_noise: f64| {
            let indices = MIN_ROUNDS..n.saturating_sub(least_after);
            let changes = indices.map(|index| (line.share_of(&shape(index), &left), index));
            let most = changes.max_by(|((_, a), _), ((_, b), _)| a.total_cmp(b));
            let ((height, explained), index) = most?;
            let mut known = line.clone();
            known.add(&shape(index));
            let noise = known.slow_deviation(y).0.max(least_noise);
            Some((explained / noise.powi(2), Step { index, height }))
        };
        let step = best(
            MIN_ROUNDS,
            &|index| after(index, 0..n),
            series.noise.deviation,
        );
        let before = |index: usize| x.iter().map(|at| (at - x[index]).min(0.0)).collect();
        let bend = best(MIN_SETTLED_ROUNDS.max(n / 3), &before, 0.0);
        let step = step.filter(|(explained, _)| *explained > CERTAIN_STEP);
        // Where each quarter rises by as much, a bend is between the steps of a staircase.
        let is_steady = rises_everywhere(series, material);
        let bend = bend.filter(|(explained, _)| *explained > CERTAIN_BEND && !is_steady);
        if let Some((explained, bend)) = bend
            && step.is_none_or(|step| step.0 < explained)
        {
            let from = bend.index;
            let before = Line::through(&x[..=from], &y[..=from]).slope.value;
            return Regime {
                from,
                rise_before: before * (x[from] - x[0]),
                is_slowing: slows_down(&x[from..], &y[from..]),
                ..Regime::default()
            };
        }
        Regime {
            is_slowing: step.is_none() && slows_down(x, y),
            steps: step.map(|(_, step)| step).into_iter().collect(),
            ..Regime::default()
        }
    }

    /// Removes bursts from the series. A change of less than `material` does not matter.
    pub fn last(series: &mut Series, material: f64) -> Regime {
        if series.y.len() < MIN_SETTLED_ROUNDS {
            return Regime::default();
        }
        let found = series.segments_without_bursts(material);
        let heights = found.windows(2).map(|pair| height_between(series, pair));
        Regime {
            falls: heights.filter(|height| *height < -material).count(),
            ..Regime::of(series, &found, material)
        }
    }

    /// The last regime of a series with these segments.
    fn of(series: &Series, found: &[Segment], material: f64) -> Regime {
        let n = series.y.len();
        let last = &found[found.len() - 1];
        let is_long_rise = last.slope != 0.0 && 2 * last.len() >= n;
        if !is_long_rise && rises_everywhere(series, material) {
            return Regime::default();
        }
        let same = &found[first_of_regime(series, found, material)..];
        let (mut from, mut steps) = steps_between(series, same);
        // Steps at the start are a warm-up.
        let begin = usize::max(3, n / 10);
        while steps.first().is_some_and(|step| step.index <= begin) {
            from = steps.remove(0).index;
        }
        // A smaller step than matters would pass for growth beside a larger one. Many are growth.
        let half = material / 2.0;
        let above = |least: f64| steps.iter().filter(move |step| step.height.abs() > least);
        let least = match above(material).count() {
            1.. if above(half).count() < MIN_STAIRS => half,
            _ => material,
        };
        steps.retain(|step| step.height.abs() > least);
        let is_slowing = steps.is_empty() && slows_down(&series.x[from..], &series.y[from..]);
        if from == 0 && steps.is_empty() {
            return Regime::whole(series, material);
        }
        let deciding = found.iter().find(|segment| segment.to > from);
        let level = deciding.map_or(0.0, |segment| segment.value_at(series.x[from]));
        let ups = steps.iter().filter(|step| step.height > 0.0).count();
        if ups >= MIN_STAIRS && ups > 2 * (steps.len() - ups) {
            steps.clear();
        }
        Regime {
            from,
            steps,
            rise_before: if from > 0 { level - series.y[0] } else { 0.0 },
            is_slowing,
            falls: 0,
        }
    }
}

/// The first segment at the end of the series that has the same slope as the last ones.
fn first_of_regime(series: &Series, found: &[Segment], material: f64) -> usize {
    let is_flat = |s: &Segment| {
        let rise = s.slope * (series.x[s.to - 1] - series.x[s.from]);
        rise.abs() < material
    };
    let is_short = |s: &Segment| s.len() < MIN_ROUNDS;
    // A slope that matters over many rounds does not within a few.
    let goes_on = |before: &Segment, after: &Segment| {
        let slope = Line::through(&series.x[after.from..], &series.y[after.from..]).slope;
        slope.low * slope.high > 0.0 && (slope.low..slope.high).contains(&before.slope)
    };
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
            (true, false) | (false, true) => {
                is_short(before) && before.from > 0 || goes_on(before, &found[first])
            }
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

/// The height of the step between two segments.
fn height_between(series: &Series, pair: &[Segment]) -> f64 {
    let at = series.x[pair[1].from];
    pair[1].value_at(at) - pair[0].value_at(at)
}

/// The first sample after a rise in many short steps, and the steps after it.
fn steps_between(series: &Series, found: &[Segment]) -> (usize, Vec<Step>) {
    let n = series.y.len();
    let mut from = found[0].from;
    let mut steps: Vec<Step> = Vec::new();
    let mut joined = 0;
    for pair in found.windows(2) {
        let (left, index) = (&pair[0], pair[1].from);
        let height = height_between(series, pair);
        let previous = steps.last_mut().filter(|step| step.height * height > 0.0);
        match previous.filter(|_| left.len() < MIN_TREAD) {
            Some(_) if joined > 0 && 3 * (n - index) > n => {
                steps.clear();
                from = index;
            }
            Some(step) => {
                step.index = index;
                step.height += height;
                joined += 1;
            }
            None => {
                joined = 0;
                steps.push(Step { index, height });
            }
        }
    }
    (from, steps)
}

/// True if each quarter of the series rises by about as much: steady growth, or many steps.
fn rises_everywhere(series: &Series, material: f64) -> bool {
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
    least > material / 8.0 && most < 3.0 * least
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
    late.value < SLOWER * early.value && late.value + tolerance < early.value
}
