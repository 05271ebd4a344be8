//! Detects cyclic garbage: live memory that rises until a full collection runs and falls with it.
//! For malloc this memory is live, but the program no longer uses it, so it is not a leak.
//!
//! The functions correct a verdict that rests on the trend alone. Garbage may explain a rise, hide
//! a leak, or make a level process look unclear.

use std::collections::BTreeMap;

use super::finding::{Finding, GarbageEvidence, Verdict};
use super::stats::{
    growth_of_lows, material_growth, mean, median, quantile, Collected, Slope, Trend, TrendClass,
    MATERIAL_BYTES,
};
use crate::report::model::{Collection, Process, Series, Size};

/// The highest rise of memory after collections, as a share of the size, that counts as level.
const LEVEL_SHARE: f64 = 0.05;
/// The share of the growth that collections must release to explain it.
const EXPLAINED_SHARE: f64 = 0.6;
/// A collection may leave so much more of the garbage than another, as a share of what it releases.
const UNEVEN_SHARE: f64 = 0.15;
/// Collections release at most so many times the bytes that they report.
const MAX_FACTOR: f64 = 2.0;
/// The most that a collection leaves, in percent of the bytes that it releases.
const MAX_LEFT_PERCENT: u8 = 50;

/// What the collections show about this finding.
pub fn evidence(process: &Process, series: &Series, finding: &Finding) -> Option<GarbageEvidence> {
    let size = median_footprint(series);
    let collections = material_collections(process, size);
    let is_repeated = collections.len() >= 2;
    let is_level = rise_after_collections(&collections) <= MATERIAL_BYTES.max(LEVEL_SHARE * size);
    // A step is no swing.
    let may_swing = is_repeated && finding.steps.is_empty();
    (!collections.is_empty()).then(|| {
        let without = trend_without_garbage(process, series);
        GarbageEvidence {
            swing_share: may_swing.then(|| swing(series, finding) / size),
            is_level_after_collections: is_repeated && is_level,
            explains_growth: collections_explain_growth(
                series,
                &collections,
                &finding.trend,
                without.as_ref(),
            ),
            explains_fall: without.is_some_and(|trend| trend.class == TrendClass::Level),
        }
    })
}

/// The trend of memory without garbage, if it grows while the trend of all memory does not show it, or
/// shows it less exactly.
pub fn growth_without_garbage(
    process: &Process,
    series: &Series,
    verdict: Verdict,
    of_all: &Trend,
) -> Option<Trend> {
    let without = trend_without_garbage(process, series).filter(Trend::is_growing)?;
    let is_better = match verdict {
        Verdict::LiveGrowth | Verdict::Growth => without.width() < of_all.width(),
        Verdict::Retention | Verdict::Swap | Verdict::FileBacked => false,
        Verdict::Unclear
        | Verdict::WarmingUp
        | Verdict::CyclicGarbage
        | Verdict::Falling
        | Verdict::Flat
        | Verdict::NotEnoughRounds => true,
    };
    is_better.then_some(without)
}

/// The trend of memory without garbage; `None` with fewer than two collections.
fn trend_without_garbage(process: &Process, series: &Series) -> Option<Trend> {
    let (x, size) = (series.positions(), median_footprint(series));
    let releases = releases_by_point(process, series);
    if releases.len() < 2 {
        return None;
    }
    let memory = live_or_footprint(series);
    let trend = Trend::of(&x, &without_garbage(&memory, &x, &releases), size);
    let lows_from = |from| slope_of_lows(&x, &memory, &releases, from);
    if let Some(slope) = lows_from(trend.settled_from) {
        let by_lows = trend.clone().with_slope_of_lows(slope);
        let is_confirmed = by_lows.class == trend.class && trend.width() <= by_lows.width();
        return Some(if is_confirmed { trend } else { by_lows });
    }
    // Uneven garbage may look like growth or a warm-up. All lows together can refute it.
    if let Some(slope) = lows_from(x[0])
        && trend.clone().with_slope_of_lows(slope).class != trend.class
    {
        return Some(trend.treated_as_level());
    }
    let rise = trend.slope.per_x * (x[x.len() - 1] - x[0]);
    let released: Vec<f64> = releases.into_values().collect();
    match trend.is_growing() && rise < UNEVEN_SHARE * median(&released) {
        true => Some(trend.treated_as_level()),
        false => Some(trend),
    }
}

/// The growth of the lows from this x on.
fn slope_of_lows(
    x: &[f64],
    memory: &[f64],
    releases: &BTreeMap<usize, f64>,
    from: f64,
) -> Option<Slope> {
    let collected = |(&after, &released): (&usize, &f64)| Collected {
        before: (x[after - 1], memory[after - 1]),
        after: (x[after], memory[after]),
        released,
    };
    let settled = releases.iter().filter(|(after, _)| x[**after - 1] >= from);
    let settled: Vec<Collected> = settled.map(collected).collect();
    let new = |i: usize| {
        let released = releases.get(&i).copied().unwrap_or(0.0);
        (memory[i] - memory[i - 1] + released) / (x[i] - x[i - 1])
    };
    let made: Vec<f64> = (1..x.len()).map(new).collect();
    growth_of_lows(&settled, x[x.len() - 1] - from, &made)
}

/// Live memory if it is known, else RSS and swap.
fn live_or_footprint(series: &Series) -> Vec<f64> {
    let points = series.points().iter();
    let live: Vec<f64> = points
        .clone()
        .map(|point| point.sizes[Size::Live])
        .collect();
    match live.iter().any(|bytes| bytes.is_nan()) {
        true => points.map(|point| point.sizes.footprint()).collect(),
        false => live,
    }
}

/// The index of the first point after each collection, with the bytes released before it.
fn releases_by_point(process: &Process, series: &Series) -> BTreeMap<usize, f64> {
    let mut releases: BTreeMap<usize, f64> = BTreeMap::new();
    let points = series.points();
    for collection in process.collections.releasing_at_least(0.0) {
        let after = points.partition_point(|point| point.order < collection.order);
        *releases.entry(after).or_default() += collection.released;
    }
    releases.retain(|point, _| (1..points.len()).contains(point));
    releases
}

/// The memory at each point, minus the estimated garbage.
fn without_garbage(memory: &[f64], x: &[f64], releases: &BTreeMap<usize, f64>) -> Vec<f64> {
    let shares = (0..=MAX_LEFT_PERCENT).map(|percent| f64::from(percent) / 100.0);
    let fits = shares.map(|left| Garbage::fitted(x, memory, releases, left));
    let best = fits.min_by(|a, b| a.residual.total_cmp(&b.residual));
    best.map_or(memory.to_vec(), |fit| fit.memory)
}

/// Memory without garbage, and the sum of the squared distances from its line.
struct Garbage {
    memory: Vec<f64>,
    residual: f64,
}

impl Garbage {
    /// A collection leaves this share of the bytes that it reports. It may also release more than it
    /// reports, so the garbage has a factor, which is fitted together with the slope by least squares.
    fn fitted(x: &[f64], memory: &[f64], releases: &BTreeMap<usize, f64>, left: f64) -> Garbage {
        let garbage = garbage_at_points(x, releases, left);
        let covariance = |a: &[f64], b: &[f64]| -> f64 {
            let (mean_a, mean_b) = (mean(a), mean(b));
            let pairs = a.iter().zip(b);
            pairs.map(|(a, b)| (a - mean_a) * (b - mean_b)).sum()
        };
        let (xx, gg) = (covariance(x, x), covariance(&garbage, &garbage));
        let xg = covariance(x, &garbage);
        let (xm, gm) = (covariance(x, memory), covariance(&garbage, memory));
        let factor = (gm * xx - xm * xg) / (gg * xx - xg * xg);
        // If every point follows a collection, there is no garbage to subtract.
        let factor = match factor.is_finite() {
            true => factor.clamp(0.0, MAX_FACTOR),
            false => 0.0,
        };
        let pairs = memory.iter().zip(&garbage);
        let memory: Vec<f64> = pairs
            .map(|(memory, garbage)| memory - factor * garbage)
            .collect();
        let (mm, xm) = (covariance(&memory, &memory), covariance(x, &memory));
        Garbage {
            residual: mm - xm * xm / xx,
            memory,
        }
    }
}

/// The garbage at each point. It accumulates linearly, and a collection leaves the share `left` of the
/// bytes that it releases. After the last collection it accumulates at the average rate, for no longer
/// than between two collections: a later rise may be a leak.
fn garbage_at_points(x: &[f64], releases: &BTreeMap<usize, f64>, left: f64) -> Vec<f64> {
    let mut garbage = vec![0.0; x.len()];
    let (mut from, mut kept, mut made, mut longest) = (0, 0.0, 0.0, 0.0);
    let mut fill = |from: usize, to: usize, kept: f64, rate: f64, longest: f64| {
        (from..to).for_each(|i| garbage[i] = kept + rate * (x[i] - x[from]).min(longest));
    };
    for (&end, released) in releases {
        let new = released * (1.0 + left) - kept;
        let elapsed = x[end] - x[from];
        fill(from, end, kept, new / elapsed, elapsed);
        (from, kept, made) = (end, left * released, made + new);
        longest = f64::max(longest, elapsed);
    }
    fill(from, x.len(), kept, made / (x[from] - x[0]), longest);
    garbage
}

/// True if a collection released most of the rise, and memory after the collections does not rise.
/// `without` is the trend without garbage, if it is known.
fn collections_explain_growth(
    series: &Series,
    collections: &[Collection],
    trend: &Trend,
    without: Option<&Trend>,
) -> bool {
    if let Some(without) = without {
        return !without.is_growing();
    }
    let x = series.positions();
    let ends = x.first().zip(x.last());
    let rise = trend.slope.per_x * ends.map_or(0.0, |(first, last)| last - first);
    let released = collections.iter().map(|one| one.released);
    let releases_most = released.fold(0.0, f64::max) >= EXPLAINED_SHARE * rise;
    let rises_little = rise_after_collections(collections) < (1.0 - EXPLAINED_SHARE) * rise;
    releases_most && rises_little
}

/// Median live memory after the later half of the collections, minus that after the earlier half;
/// 0 for a single collection.
fn rise_after_collections(collections: &[Collection]) -> f64 {
    let (early, late) = collections.split_at(collections.len() / 2);
    let live_after = |half: &[Collection]| {
        let live = half.iter().map(|collection| collection.live_after);
        median(&live.collect::<Vec<_>>())
    };
    if early.is_empty() {
        return 0.0;
    }
    live_after(late) - live_after(early)
}

/// The collections that released enough to matter for a process of this size.
fn material_collections(process: &Process, size: f64) -> Vec<Collection> {
    process
        .collections
        .releasing_at_least(material_growth(size))
}

fn median_footprint(series: &Series) -> f64 {
    let sizes = series.points().iter().map(|point| point.sizes.footprint());
    median(&sizes.collect::<Vec<_>>())
}

/// The distance between the 5 % and 95 % quantiles after the warm-up, of live memory if known, else
/// of RSS.
pub fn swing(series: &Series, finding: &Finding) -> f64 {
    let points = series.points();
    let settled = &points[finding.trend.warm_up.min(points.len())..];
    let swing_of = |size: Size| {
        let known = settled.iter().map(|point| point.sizes[size]);
        let known: Vec<f64> = known.filter(|bytes| !bytes.is_nan()).collect();
        (!known.is_empty()).then(|| quantile(&known, 0.95) - quantile(&known, 0.05))
    };
    swing_of(Size::Live)
        .or_else(|| swing_of(Size::Rss))
        .unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::analyse;
    use crate::report::analyse::fixtures::{process_and_finding, processes, sample, sizes};
    use crate::report::analyse::stats::random::Random;
    use crate::report::analyse::Quantity;
    use crate::report::model::Sample;
    use crate::report::units::MB;

    /// The finding for a process whose rounds have this live memory in MB and this release before
    /// the marker. 100 MB of RSS are not live.
    fn finding(rounds: &[(f64, f64)]) -> Finding {
        let marker = |(round, (live, released)): (usize, &(f64, f64))| {
            let rss = live + 100.0;
            let known = [
                (Size::Live, *live),
                (Size::Rss, rss),
                (Size::Anon, rss),
                (Size::File, 0.0),
                (Size::Shmem, 0.0),
                (Size::Swap, 0.0),
                (Size::Retained, 0.0),
                (Size::Recycled, 0.0),
            ];
            Sample {
                stage: "after_aggregation".into(),
                gc_released: released * MB,
                gc_ms: 10.0,
                ..sample(round, sizes(&known))
            }
        };
        process_and_finding(rounds.iter().enumerate().map(marker)).1
    }

    fn verdict(rounds: &[(f64, f64)]) -> Verdict {
        finding(rounds).verdict
    }

    /// Garbage of `height` MB per round, collected every `period` rounds, and a leak in MB per round.
    fn sawtooth(rounds: usize, period: usize, height: f64, leak: f64) -> Vec<(f64, f64)> {
        let one = |round: usize| {
            let garbage = (round % period) as f64 * height;
            let is_collected = round > 0 && round.is_multiple_of(period);
            let released = if is_collected { period - 1 } else { 0 };
            let live = 250.0 + garbage + leak * round as f64;
            (live, released as f64 * height)
        };
        (0..rounds).map(one).collect()
    }

    #[test]
    fn a_sawtooth_of_live_memory_is_cyclic_garbage() {
        let few = [(17, 8), (24, 8), (30, 8), (40, 8)];
        for (rounds, period) in few.into_iter().chain([(31, 6), (60, 12), (23, 11)]) {
            let verdict = verdict(&sawtooth(rounds, period, 64.0, 0.0));
            assert_eq!(verdict, Verdict::CyclicGarbage, "{rounds}/{period}");
        }
    }

    #[test]
    fn twins_that_swing_by_about_a_third_get_the_same_verdict() {
        let twin = |pid: u32, height: f64| {
            sawtooth(48, 6, height, 0.0).into_iter().enumerate().map(
                move |(round, (live, released))| Sample {
                    pid: Some(pid),
                    gc_released: released * MB,
                    site: Some(format!("site-{pid}").into()),
                    ..sample(
                        round,
                        sizes(&[(Size::Live, live), (Size::Rss, live + 100.0)]),
                    )
                },
            )
        };
        let verdicts = |heights: &[f64]| -> Vec<Verdict> {
            let markers = (1..)
                .zip(heights)
                .flat_map(|(pid, height)| twin(pid, *height));
            let reports = analyse(processes(markers));
            reports
                .iter()
                .map(|report| report.finding.verdict)
                .collect()
        };
        assert_eq!(verdicts(&[28.0]), [Verdict::Flat]);
        assert_eq!(verdicts(&[34.0]), [Verdict::CyclicGarbage]);
        assert_eq!(verdicts(&[28.0, 34.0, 36.0]), [Verdict::CyclicGarbage; 3]);
        assert_eq!(verdicts(&[27.0, 28.0, 34.0]), [Verdict::Flat; 3]);
    }

    #[test]
    fn a_recorded_nvflare_server_job_is_cyclic_garbage() {
        // Live MB after each of twelve aggregations.
        let live = [
            267.0, 334.0, 396.0, 266.0, 392.0, 528.0, 587.0, 724.0, 721.0, 851.0, 922.0, 328.0,
        ];
        let mut before = 0.0;
        let rounds = live.into_iter().map(|now| {
            let fall = f64::max(before - now, 0.0);
            before = now;
            (now, if fall > 10.0 { fall + 64.0 } else { 0.0 })
        });
        let verdict = verdict(&rounds.collect::<Vec<_>>());
        assert_eq!(verdict, Verdict::CyclicGarbage);
    }

    #[test]
    fn a_leak_above_the_garbage_is_live_growth() {
        for leak in [16.0, 64.0] {
            let verdict = verdict(&sawtooth(48, 4, 8.0, leak));
            assert_eq!(verdict, Verdict::LiveGrowth, "{leak}");
        }
    }

    #[test]
    fn a_leak_below_large_teeth_is_live_growth_of_memory_without_garbage() {
        let finding = finding(&sawtooth(48, 12, 20.0, 2.5));
        assert_eq!(finding.verdict, Verdict::LiveGrowth);
        assert_eq!(finding.quantity, Quantity::AfterCollections);
        let slope = finding.trend.slope.per_x / MB;
        assert!((2.49..2.51).contains(&slope), "{slope}");
    }

    /// 100 rounds with collections only before rounds 3 and 6, each of which releases so many MB.
    fn early_collections(released: f64, live: impl FnMut(f64) -> f64) -> Vec<(f64, f64)> {
        let releases = |round: usize| {
            if matches!(round, 3 | 6) {
                released
            } else {
                0.0
            }
        };
        let live = (0..100).map(f64::from).map(live);
        live.zip((0..).map(releases)).collect()
    }

    #[test]
    fn a_leak_that_continues_after_the_last_collection_is_live_growth() {
        let garbage = |round: f64| if round < 6.0 { round % 3.0 } else { 0.0 };
        let live = |round: f64| 250.0 + 5.0 * round + garbage(round) * 100.0 / 3.0;
        let finding = finding(&early_collections(100.0, live));
        assert_eq!(finding.verdict, Verdict::LiveGrowth);
        let slope = finding.trend.slope.per_x / MB;
        assert!((4.8..5.2).contains(&slope), "{slope}");
    }

    /// The noise is 0.5 % of the footprint.
    #[test]
    fn a_level_process_with_two_tiny_early_collections_is_flat() {
        for seed in 0..40 {
            let mut random = Random::new(seed);
            let rounds = early_collections(0.1, |_| 250.0 + 1.75 * random.normal());
            assert_eq!(verdict(&rounds), Verdict::Flat, "{seed}");
        }
    }

    #[test]
    fn garbage_collected_within_the_round_leaves_the_process_flat() {
        let released = |round: usize| if round.is_multiple_of(3) { 64.0 } else { 0.0 };
        let rounds: Vec<_> = (0..30).map(|round| (250.0, released(round))).collect();
        assert_eq!(verdict(&rounds), Verdict::Flat);
    }

    #[test]
    fn a_level_process_without_collections_is_flat() {
        assert_eq!(verdict(&[(250.0, f64::NAN); 30]), Verdict::Flat);
    }

    /// An NVFlare client: 1 MB of garbage per message, and a collection about every tenth round.
    #[test]
    fn small_teeth_are_flat_if_memory_after_collections_is_level() {
        for rounds in [16, 20, 24, 50] {
            let verdict = verdict(&sawtooth(rounds, 7, 5.0, 0.0));
            assert_eq!(verdict, Verdict::Flat, "{rounds}");
        }
    }

    #[test]
    fn rising_memory_after_collections_is_never_flat() {
        for (rounds, leak) in [(24, 2.5), (24, 5.0), (48, 2.5), (48, 1.5)] {
            let verdict = verdict(&sawtooth(rounds, 6, 5.0, leak));
            assert_ne!(verdict, Verdict::Flat, "{rounds}/{leak}");
        }
    }
}
