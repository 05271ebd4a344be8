//! Cyclic garbage: live memory that rises until a full collection runs, and falls with it. To malloc
//! it is live, to the program it is gone: neither growth nor level.

use std::collections::BTreeMap;

use crate::report::analyse::finding::{Finding, Verdict};
use crate::report::analyse::stats::{material, mean, median, quantile, Trend, MATERIAL_BYTES};
use crate::report::model::{Collected, Process, Series, Size};
use crate::report::units::{printable, size, MB};

/// Swings of more than this part of the process are not "flat".
const SWING_SHARE: f64 = 1.0 / 3.0;
/// Collections that leave this part of the process more than earlier ones hide a rise.
const FLOOR_SHARE: f64 = 0.05;
/// The part of the growth that collections must explain.
const EXPLAINED_SHARE: f64 = 0.6;

/// True where collections explain what the verdict rests on.
pub fn explains(process: &Process, series: &Series, finding: &Finding) -> bool {
    let swings = || swings(process, series, finding);
    let explains_growth = || explains_growth(process, series, &finding.trend);
    match finding.verdict {
        Verdict::Flat => swings(),
        Verdict::Unclear => swings() || explains_growth(),
        Verdict::LiveGrowth | Verdict::Growth | Verdict::WarmingUp => explains_growth(),
        _ => false,
    }
}

/// A leak that the teeth of garbage hide: what collections leave grows, and the whole does not show it.
pub fn hidden_growth(process: &Process, series: &Series, finding: &Finding) -> Option<Trend> {
    if finding.verdict.is_growth() && !explains(process, series, finding) {
        return None;
    }
    let (x, level) = (series.axis(), level(series));
    let ends = ends(process, series);
    let second = *ends.keys().nth(1)?;
    let left = without_garbage(series, &x, &ends);
    let whole = Trend::of(&x, &left, level);
    // What collections do not find gathers over the first of them, and then no more.
    let later = Trend::of(&x[second..], &left[second..], level).slope;
    let goes_on = later.low > 0.0 && 2.0 * later.per_x > whole.slope.per_x;
    Some(whole).filter(|whole| whole.is_growing() && goes_on)
}

/// The first point after each collection, and what that released.
fn ends(process: &Process, series: &Series) -> BTreeMap<usize, f64> {
    let mut ends: BTreeMap<usize, f64> = BTreeMap::new();
    let points = series.points();
    for each in process.collections.of_at_least(0.0) {
        let after = points.partition_point(|point| point.order < each.order);
        *ends.entry(after).or_default() += each.released;
    }
    ends.retain(|end, _| (1..points.len()).contains(end));
    ends
}

/// The memory of each point less the garbage in it.
fn without_garbage(series: &Series, x: &[f64], ends: &BTreeMap<usize, f64>) -> Vec<f64> {
    let points = series.points();
    let mut memory: Vec<f64> = points.iter().map(|point| point.sizes[Size::Live]).collect();
    if memory.iter().any(|bytes| bytes.is_nan()) {
        memory = points.iter().map(|point| point.sizes.footprint()).collect();
    }
    let garbage = gathered(x, ends);
    // A collection may tell of less than falls with it, so the teeth's height is fitted, beside the slope.
    let product = |a: &[f64], b: &[f64]| -> f64 {
        let (of_a, of_b) = (mean(a), mean(b));
        let pairs = a.iter().zip(b);
        pairs.map(|(a, b)| (a - of_a) * (b - of_b)).sum()
    };
    let (xx, gg) = (product(x, x), product(&garbage, &garbage));
    let (xg, xm, gm) = (
        product(x, &garbage),
        product(x, &memory),
        product(&garbage, &memory),
    );
    let height = (gm * xx - xm * xg) / (gg * xx - xg * xg);
    // All points stand right behind a collection: there is nothing to take off.
    let height = if height.is_finite() { height } else { 0.0 };
    let both = memory.iter().zip(&garbage);
    both.map(|(memory, garbage)| memory - height * garbage)
        .collect()
}

/// Between two collections gathers evenly what the later one releases, and after the last one as much as before.
fn gathered(x: &[f64], ends: &BTreeMap<usize, f64>) -> Vec<f64> {
    let mut garbage = vec![0.0; x.len()];
    let (mut from, mut all) = (0, 0.0);
    let mut fill = |from: usize, to: usize, rate: f64| {
        (from..to).for_each(|i| garbage[i] = rate * (x[i] - x[from]));
    };
    for (&end, released) in ends {
        fill(from, end, released / (x[end] - x[from]));
        (from, all) = (end, all + released);
    }
    fill(from, x.len(), all / (x[from] - x[0]));
    garbage
}

/// Where garbage comes and goes within bounds, a slope says little; what collections leave says it: a level.
pub fn keeps_level(process: &Process, series: &Series, finding: &Finding) -> bool {
    let judged = matches!(finding.verdict, Verdict::Unclear | Verdict::WarmingUp);
    let level = level(series);
    let collections = collections(process, level);
    let (low, high) = finding.range;
    judged
        && collections.len() >= 2
        && high - low <= SWING_SHARE * level
        && floor_rises_by(&collections) <= MATERIAL_BYTES.max(FLOOR_SHARE * level)
}

/// Back and forth by much, with more than one collection: not level, whatever the slope.
fn swings(process: &Process, series: &Series, finding: &Finding) -> bool {
    let level = level(series);
    collections(process, level).len() >= 2 && swing(series, finding) > SWING_SHARE * level
}

/// The rise is what collections took away again, and what they leave does not rise with it.
fn explains_growth(process: &Process, series: &Series, trend: &Trend) -> bool {
    let x = series.axis();
    let ends = x.first().zip(x.last());
    let rise = trend.slope.per_x * ends.map_or(0.0, |(first, last)| last - first);
    let collections = collections(process, level(series));
    let released = collections.iter().map(|each| each.released);
    if released.fold(0.0, f64::max) < EXPLAINED_SHARE * rise || collections.is_empty() {
        return false;
    }
    floor_rises_by(&collections) < (1.0 - EXPLAINED_SHARE) * rise
}

/// What the later half of the collections leaves more than the earlier one; one alone tells nothing.
fn floor_rises_by(collections: &[Collected]) -> f64 {
    let (early, late) = collections.split_at(collections.len() / 2);
    let floor = |half: &[Collected]| median(&half.iter().map(|c| c.live_after).collect::<Vec<_>>());
    if early.is_empty() {
        return 0.0;
    }
    floor(late) - floor(early)
}

/// A collection that released less than what matters explains nothing.
fn collections(process: &Process, level: f64) -> Vec<Collected> {
    process.collections.of_at_least(material(level))
}

fn level(series: &Series) -> f64 {
    let sizes = series.points().iter().map(|point| point.sizes.footprint());
    median(&sizes.collect::<Vec<_>>())
}

/// From the low points after the warm-up to the high ones, of live memory where it is known.
fn swing(series: &Series, finding: &Finding) -> f64 {
    let points = series.points();
    let settled = &points[finding.trend.warm_up.min(points.len())..];
    let of = |size: Size| {
        let known = settled.iter().map(|point| point.sizes[size]);
        let known: Vec<f64> = known.filter(|bytes| !bytes.is_nan()).collect();
        (!known.is_empty()).then(|| quantile(&known, 0.95) - quantile(&known, 0.05))
    };
    of(Size::Live).or_else(|| of(Size::Rss)).unwrap_or(0.0)
}

/// The evidence.
pub fn sentence(process: &Process, finding: &Finding) -> String {
    let (stage, rounds, unit) = (&finding.stage, finding.rounds, finding.unit);
    let series = process.series(stage);
    let height = series.map_or(0.0, |series| swing(series, finding));
    let all = process.collections.of_at_least(MATERIAL_BYTES);
    let middle = median(&all.iter().map(|each| each.released).collect::<Vec<_>>());
    let often = match rounds / (all.len() as u64).max(1) {
        0 | 1 => format!("about one each {unit}"),
        n => format!("about one in {n} {unit}s"),
    };
    format!(
        "live memory swings by {} and falls with full garbage collections: {}, {often}, {} the middle \
         one, in {:.1} s: reference cycles hold it until Python collects, seen at {}.",
        size(height),
        released(process, ""),
        size(middle),
        process.collections.ms / 1000.0,
        printable(stage),
    )
}

/// `9 released 1.40 GB`
fn released(process: &Process, of: &str) -> String {
    let all = &process.collections;
    format!("{}{of} released {}", all.count, size(all.released))
}

/// For a process that is flat because its garbage was collected in time; empty where there was none.
pub fn in_time(process: &Process) -> String {
    const WORTH_A_WORD: f64 = 32.0 * MB;
    if process.collections.released < WORTH_A_WORD {
        return String::new();
    }
    let released = released(process, " of its collections");
    format!(" Cyclic garbage was collected in time: {released}.")
}

pub const REMEDY: &str = "FLARENA_GC=auto, the default, collects it by bytes at each stage, NVFlare's \
     memory_gc_rounds=1 (server) and client_memory_gc_rounds=1 at each round; better, break the cycle where the memory is allocated";
