//! Detects cyclic garbage: live memory that rises until a full collection runs and falls with it.
//! For malloc this memory is live, but the program no longer uses it, so it is not a leak.
//!
//! The library measures the memory in large blocks right after each full collection (`gc_live_after_bytes`). These lows are
//! a column like the others. Memory in small blocks shows in the live memory at the marker after a collection.

use std::collections::BTreeMap;

use super::fit::Fit;
use super::stats::{median, Line, Trend, MATERIAL_BYTES, MIN_SETTLED_ROUNDS};
use crate::report::model::Size;

/// The highest rise of memory after collections, as a share of the size, that counts as level.
const LEVEL_SHARE: f64 = 0.05;
/// The share of the growth that garbage must be, to explain it.
const EXPLAINED_SHARE: f64 = 0.6;
/// A collection may come so many times later than any before.
const RECENT: f64 = 1.5;
/// Fewer lows show no trend.
const MIN_LOWS: usize = 3;

/// The memory after full collections at one stage, where it is known.
pub struct Lows<'a> {
    fit: &'a Fit<'a>,
    /// The positions of the first and the last point of the stage.
    begin: f64,
    end: f64,
    /// The first point after each collection, and its position.
    points: Vec<usize>,
    x: Vec<f64>,
    /// Memory in large blocks right after it.
    after: Vec<f64>,
    /// Live memory at that point, or the footprint if that is unknown.
    live: Vec<f64>,
}

impl Lows<'_> {
    pub fn of<'a>(fit: &'a Fit) -> Lows<'a> {
        let (points, x) = (fit.series.points(), fit.series.positions());
        let mut least: BTreeMap<usize, f64> = BTreeMap::new();
        for collection in &fit.process.collections.kept {
            let at = points.partition_point(|point| point.order < collection.order);
            if let Some(after) = collection.live_after.filter(|_| at < points.len()) {
                let least = least.entry(at).or_insert(after);
                *least = least.min(after);
            }
        }
        let live = |at: &usize| {
            let sizes = &points[*at].sizes;
            sizes.get(Size::Live).unwrap_or(sizes.footprint())
        };
        Lows {
            fit,
            begin: x[0],
            end: x[x.len() - 1],
            x: least.keys().map(|at| x[*at]).collect(),
            live: least.keys().map(live).collect(),
            after: least.values().copied().collect(),
            points: least.into_keys().collect(),
        }
    }

    /// The time since the last collection is no longer than that between two, so that what came since may be garbage.
    pub fn are_recent(&self) -> bool {
        let before = std::iter::once(&self.begin).chain(&self.x);
        let times = self.x.iter().zip(before).map(|(at, before)| at - before);
        let last = self.x.last().unwrap_or(&self.begin);
        self.end - last <= RECENT * times.fold(0.0, f64::max)
    }

    /// Memory after collections does not rise, neither in large blocks nor in all. `false` for fewer than two.
    pub fn are_level(&self, of_all: &Trend) -> bool {
        if self.points.len() < 2 {
            return false;
        }
        let rise = |values: &[f64]| {
            let (early, late) = values.split_at(values.len() / 2);
            median(late) - median(early)
        };
        let unexplained = (1.0 - EXPLAINED_SHARE) * of_all.slope.value;
        let material = MATERIAL_BYTES.max(LEVEL_SHARE * self.fit.size);
        [&self.after, &self.live].into_iter().all(|values| {
            let rises = rise(values) > material.max(unexplained * rise(&self.x));
            // The first collections may leave less than the later ones.
            let last = |of: &[f64]| of[of.len() - 1] - of[of.len() - 2];
            let has_settled = values.len() > 2 && last(values) <= unexplained * last(&self.x);
            (!rises || has_settled) && !self.trend(values).is_some_and(|trend| trend.is_growing())
        })
    }

    /// The trend of memory in large blocks, if it grows.
    pub fn growth(&self) -> Option<Trend> {
        self.trend(&self.after).filter(Trend::is_growing)
    }

    /// The trend of these values, in rounds of the series. `None` for few lows, or if they cover less than half of the
    /// rounds.
    fn trend(&self, values: &[f64]) -> Option<Trend> {
        let span = self.x.last()? - self.x.first()?;
        if values.len() < MIN_LOWS || span < (self.end - self.begin) / 2.0 {
            return None;
        }
        if values.len() < MIN_SETTLED_ROUNDS {
            let slope = Line::through(&self.x, values).slope;
            return Some(self.fit.trend.clone().with_slope_of_lows(slope));
        }
        let mut trend = Trend::of(&self.x, values, self.fit.size);
        // Of the points of the stage, not of the lows.
        if trend.warm_up > 0 {
            trend.warm_up = self.points[trend.warm_up];
        }
        trend.steps.clear();
        Some(trend)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::{
        analyse, bytes, finding_of, processes, sample, sizes, Random,
    };
    use crate::report::analyse::{Finding, Quantity, Verdict};
    use crate::report::units::MB;
    use flarena_shared::marker::Marker;

    /// The finding for a process whose rounds have this live memory in MB and this release before
    /// the marker. 100 MB of RSS are not live.
    fn finding(rounds: &[(f64, f64)]) -> Finding<'static> {
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
            Marker {
                stage: "after_aggregation".into(),
                gc_released_bytes: bytes(*released),
                gc_live_after_bytes: low(*live, *released),
                gc_ms: Some(10),
                ..sample(round, sizes(&known))
            }
        };
        finding_of(rounds.iter().enumerate().map(marker))
    }

    /// The collection runs just before the marker.
    fn low(live: f64, released: f64) -> Option<u64> {
        bytes(live).filter(|_| released > 0.0)
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
                move |(round, (live, released))| Marker {
                    pid: Some(pid),
                    gc_released_bytes: bytes(released),
                    gc_live_after_bytes: low(live, released),
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
            let findings = analyse(processes(markers));
            findings.iter().map(|finding| finding.verdict).collect()
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
        let slope = finding.trend.slope.value / MB;
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
        let slope = finding.trend.slope.value / MB;
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
