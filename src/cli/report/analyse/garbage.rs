//! Detects cyclic garbage: live memory that rises until a full collection runs and falls with it.
//! For malloc this memory is live, but the program no longer uses it, so it is not a leak.
//!
//! The library measures the memory in large blocks right after each full collection (`gc_live_after_bytes`). These lows are
//! a column like the others. Memory in small blocks shows in the live memory at the marker after a collection.

use super::finding::{Finding, GarbageEvidence, Verdict};
use super::stats::{
    material_growth, median, quantile, Line, Trend, MATERIAL_BYTES, MIN_SETTLED_ROUNDS,
};
use crate::report::model::{Process, Series, Size};

/// The highest rise of memory after collections, as a share of the size, that counts as level.
const LEVEL_SHARE: f64 = 0.05;
/// The share of the growth that garbage must be, to explain it.
const EXPLAINED_SHARE: f64 = 0.6;
/// A collection may come so many times later than any before.
const RECENT: f64 = 1.5;
/// Fewer lows show no trend.
const MIN_LOWS: usize = 3;

/// What the collections show about this finding.
pub fn evidence(process: &Process, series: &Series, finding: &Finding) -> Option<GarbageEvidence> {
    let size = median_footprint(series);
    let material = process
        .collections
        .releasing_at_least(material_growth(size));
    if material.is_empty() {
        return None;
    }
    let is_repeated = material.len() >= 2;
    let lows = Lows::of(process, series);
    let is_level = lows.are_level(series, &finding.trend, size);
    Some(GarbageEvidence {
        // A step is no swing.
        swing_share: (is_repeated && finding.steps.is_empty())
            .then(|| swing(series, finding) / size),
        explains_growth: is_level && lows.are_recent(series),
        explains_fall: is_level,
    })
}

/// The trend after collections, if it grows while the trend of all memory does not show it, or shows it less exactly.
pub fn growth_after_collections(
    process: &Process,
    series: &Series,
    verdict: Verdict,
    of_all: &Trend,
) -> Option<Trend> {
    let lows = Lows::of(process, series);
    let after = lows.trend(series, &lows.after).filter(Trend::is_growing)?;
    let is_better = match verdict {
        Verdict::LiveGrowth | Verdict::Growth => after.width() < of_all.width(),
        Verdict::Retention | Verdict::Swap | Verdict::FileBacked => false,
        Verdict::Unclear
        | Verdict::WarmingUp
        | Verdict::CyclicGarbage
        | Verdict::Falling
        | Verdict::Flat
        | Verdict::NotEnoughRounds => true,
    };
    is_better.then_some(after)
}

/// The memory after full collections, where it is known.
struct Lows {
    /// The first point after each collection.
    points: Vec<usize>,
    /// Memory in large blocks right after it.
    after: Vec<f64>,
    /// Live memory at that point, or the footprint if that is unknown.
    live: Vec<f64>,
}

impl Lows {
    fn of(process: &Process, series: &Series) -> Lows {
        let points = series.points();
        let mut lows = Lows {
            points: Vec::new(),
            after: Vec::new(),
            live: Vec::new(),
        };
        for collection in &process.collections.kept {
            let at = points.partition_point(|point| point.order < collection.order);
            let Some(point) = points.get(at).filter(|_| !collection.live_after.is_nan()) else {
                continue;
            };
            if lows.points.last() == Some(&at) {
                let last = lows.after.len() - 1;
                lows.after[last] = lows.after[last].min(collection.live_after);
                continue;
            }
            lows.points.push(at);
            lows.after.push(collection.live_after);
            lows.live.push(match point.sizes[Size::Live] {
                unknown if unknown.is_nan() => point.sizes.footprint(),
                live => live,
            });
        }
        lows
    }

    /// The time since the last collection is no longer than that between two, so that what came since may be garbage.
    fn are_recent(&self, series: &Series) -> bool {
        let x = series.positions();
        let mut times = vec![x[0]];
        times.extend(self.points.iter().map(|point| x[*point]));
        let longest = times
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .fold(0.0, f64::max);
        x[x.len() - 1] - times[times.len() - 1] <= RECENT * longest
    }

    /// Memory after collections does not rise, neither in large blocks nor in all. `false` for fewer than two.
    fn are_level(&self, series: &Series, of_all: &Trend, size: f64) -> bool {
        if self.points.len() < 2 {
            return false;
        }
        let rise = |values: &[f64]| {
            let (early, late) = values.split_at(values.len() / 2);
            median(late) - median(early)
        };
        let x = series.positions();
        let at: Vec<f64> = self.points.iter().map(|point| x[*point]).collect();
        let unexplained = (1.0 - EXPLAINED_SHARE) * of_all.slope.per_x;
        let material = MATERIAL_BYTES.max(LEVEL_SHARE * size);
        let is_level = |values: &[f64]| {
            let trend = self.trend(series, values);
            let rises = rise(values) > material.max(unexplained * rise(&at));
            // The first collections may leave less than the later ones.
            let last = |of: &[f64]| of[of.len() - 1] - of[of.len() - 2];
            let has_settled = values.len() > 2 && last(values) <= unexplained * last(&at);
            (!rises || has_settled) && !trend.is_some_and(|trend| trend.is_growing())
        };
        is_level(&self.after) && is_level(&self.live)
    }

    /// The trend of these values, in rounds of the series. `None` for few lows, or if they cover less than half of the
    /// rounds.
    fn trend(&self, series: &Series, values: &[f64]) -> Option<Trend> {
        let x = series.positions();
        let of_lows: Vec<f64> = self.points.iter().map(|point| x[*point]).collect();
        let span = of_lows.last()? - of_lows.first()?;
        if values.len() < MIN_LOWS || span < (x[x.len() - 1] - x[0]) / 2.0 {
            return None;
        }
        let size = median_footprint(series);
        if values.len() >= MIN_SETTLED_ROUNDS {
            let trend = Trend::of(&of_lows, values, size);
            let first = self.points[trend.warm_up];
            return Some(trend.starting_at(first));
        }
        let all: Vec<f64> = series
            .points()
            .iter()
            .map(|point| point.sizes.footprint())
            .collect();
        Some(Trend::of(&x, &all, size).with_slope_of_lows(Line::through(&of_lows, values).slope))
    }
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
    use crate::report::analyse::fixtures::{
        if_known, process_and_finding, processes, sample, sizes,
    };
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
                gc_released: if_known(released * MB),
                gc_live_after: low(*live, *released),
                gc_ms: Some(10.0),
                ..sample(round, sizes(&known))
            }
        };
        process_and_finding(rounds.iter().enumerate().map(marker)).1
    }

    /// The collection runs just before the marker.
    fn low(live: f64, released: f64) -> Option<f64> {
        (released > 0.0).then_some(live * MB)
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
                    gc_released: if_known(released * MB),
                    gc_live_after: low(live, released),
                    site: Some(format!("site-{pid}")),
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
    fn a_leak_below_uneven_teeth_is_growth_of_memory_after_collections() {
        let uneven = |(round, (live, released)): (usize, (f64, f64))| {
            let noise = if released > 0.0 {
                0.0
            } else {
                (round * 37 % 60) as f64
            };
            (live + noise, released)
        };
        let rounds = sawtooth(60, 6, 20.0, 2.5);
        let finding = finding(
            &rounds
                .into_iter()
                .enumerate()
                .map(uneven)
                .collect::<Vec<_>>(),
        );
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
