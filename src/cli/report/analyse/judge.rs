//! Makes the finding for one process from its fit and its collections: whether it grows, and which memory grows.

use super::attribution::{causes, growth_parts, median_sizes, step_parts};
use super::finding::{Cause, Finding, Level, MemoryKind, NamedStep, PeakGrowth, Quantity, Verdict};
use super::fit::{deciding, fits, Fit, StageGrowth};
use super::garbage::Lows;
use super::gpu;
use super::kill::Kill;
use super::pace::Pace;
use super::stats::{Step, Trend, TrendClass};
use crate::report::model::{Process, Size, Sizes, Unit, MIN_SILENCE_SECONDS};

/// A process may run that has been silent for no longer than so many rounds.
const SILENT_ROUNDS: f64 = 3.0;

/// The finding for a process alone. `limit` is that of `--limit`, `end_of_group` the time of the last marker in its control
/// group. `None` for a process without stages.
pub fn finding<'a>(
    process: &'a Process,
    kill: Option<Kill>,
    limit: Option<f64>,
    end_of_group: f64,
) -> Option<Finding<'a>> {
    let fits = fits(process);
    let fit = deciding(&fits)?;
    let growth = |one: &Fit<'a>| StageGrowth {
        series: one.series,
        slope: one.trend.known_slope().filter(|_| one.unit == fit.unit),
    };
    let peak = fit.growth_of_peaks();
    let (quantity, trend) = fit.deciding_quantity(peak.as_ref());
    let parts = growth_parts(&fit.trend, &fit.sizes);
    let by_parts = causes(&parts);
    let by_trend = by_trend(trend.class, quantity, &by_parts);
    let lows = Lows::of(fit);
    let shows_growth = matches!(by_trend, Verdict::LiveGrowth | Verdict::Growth);
    // The trend of all memory does not show the growth, or shows it less exactly.
    let is_better = |after: &Trend| match by_trend.is_growth() {
        true => shows_growth && after.width() < trend.width(),
        false => true,
    };
    let after = lows.growth().filter(is_better);
    let (verdict, causes) = match &after {
        Some(_) => (Verdict::LiveGrowth, vec![Cause::ALL_LIVE]),
        // The parts are known at the markers alone, and collections do not lower the peaks.
        None if quantity == Quantity::Peak => (by_trend, Vec::new()),
        None if is_garbage(fit, by_trend, &trend, &lows) => (Verdict::CyclicGarbage, by_parts),
        None => (by_trend, by_parts),
    };
    let settled = fit.settled(&trend);
    let swings = match fit.knows_live {
        true => Size::Live,
        false => Size::Rss,
    };
    let swing = Level::of(settled.iter().filter_map(|sizes| sizes.get(swings))).height();
    // A step is no swing.
    let is_repeated = fit.material_collections() >= 2 && trend.steps.is_empty();
    let steps = trend.steps.iter().map(|step| named(fit, step)).collect();
    let typical = median_sizes(settled.iter());
    let level = Level::of(settled.iter().filter_map(|sizes| fit.quantity.of(sizes)));
    let cached = Level::of(settled.iter().map(Sizes::cached));
    let (quantity, trend) = match after {
        Some(after) => (Quantity::AfterCollections, after),
        None => (quantity, trend),
    };
    let is_faster = |peak: &PeakGrowth| {
        quantity == Quantity::Peak || peak.slope.low > trend.slope.high.max(0.0)
    };
    let pace = Pace::of(fit.unit, &fit.x, fit.points);
    let silence = match &pace {
        Some(pace) => MIN_SILENCE_SECONDS.max(SILENT_ROUNDS * pace.seconds.high),
        None => process.silence(),
    };
    let last = process.last_time();
    let is_silent = last.is_some_and(|last| end_of_group > last + silence);
    Some(Finding {
        process,
        kill,
        limit,
        verdict,
        quantity,
        series: fit.series,
        unit: fit.unit,
        stages: fits.iter().map(growth).collect(),
        hourly: pace.as_ref().and_then(|pace| pace.per_hour(trend.slope)),
        pace,
        steps,
        peak_growth: peak.map(|(_, growth)| growth).filter(is_faster),
        swing,
        swing_share: is_repeated.then(|| swing / fit.size),
        trend,
        parts,
        causes,
        typical,
        level,
        level_of: fit.quantity,
        cached,
        gpu_growth: gpu::growth(fit.series),
        may_run: !process.has_ended() && !is_silent,
    })
}

/// The verdict without the collections.
fn by_trend(class: TrendClass, quantity: Quantity, causes: &[Cause]) -> Verdict {
    match class {
        TrendClass::TooFewRounds => Verdict::NotEnoughRounds,
        TrendClass::WarmingUp => Verdict::WarmingUp,
        TrendClass::Unclear => Verdict::Unclear,
        TrendClass::Level => Verdict::Flat,
        TrendClass::Falling => Verdict::Falling,
        TrendClass::Growing => match quantity {
            Quantity::Live | Quantity::AfterCollections => Verdict::LiveGrowth,
            Quantity::Swap => Verdict::Swap,
            Quantity::Peak => Verdict::Growth,
            Quantity::Footprint | Quantity::WithoutCached => {
                let largest = causes.first().map(|cause| cause.verdict());
                largest.unwrap_or(Verdict::Growth)
            }
        },
    }
}

/// Collections explain the growth or fall of the trend.
fn is_garbage(fit: &Fit, by_trend: Verdict, trend: &Trend, lows: &Lows) -> bool {
    use Verdict::{Falling, Growth, LiveGrowth, Unclear, WarmingUp};
    let is_level = || fit.material_collections() > 0 && lows.are_level(trend);
    by_trend == Falling && is_level()
        || matches!(by_trend, Unclear | LiveGrowth | Growth | WarmingUp)
            && is_level()
            && lows.are_recent()
}

/// A step with its place and the kind of memory that changed most.
fn named(fit: &Fit, step: &Step) -> NamedStep {
    let parts = step_parts(step, &fit.sizes, &|sizes| fit.quantity.of(sizes));
    let largest = causes(&parts).first().map(|cause| cause.kind);
    // An import is followed by more samples than points.
    let round = fit.points.get(step.index).and_then(|point| point.round);
    let round = round.filter(|_| fit.unit == Unit::Round);
    NamedStep {
        at: round.map_or(fit.x[step.index], |round| round as f64),
        bytes: step.height,
        samples: fit.sizes.len() - step.index,
        kind: largest.unwrap_or(MemoryKind::Unknown),
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::report::analyse::fixtures::{finding_of, processes, sample, sizes, Random};
    use crate::report::model::Size;
    use crate::report::units::MB;
    use flarena_shared::marker::Marker;

    fn judge_rounds(sizes: impl IntoIterator<Item = Sizes>) -> Finding<'static> {
        let rounds = sizes.into_iter().enumerate();
        finding_of(rounds.map(|(round, sizes)| sample(round, sizes)))
    }

    /// The time of many rounds is a sum of random numbers, which is no line with noise.
    #[test]
    fn the_rate_per_hour_is_true_for_rounds_of_random_length() {
        let is_true = |seed: &u64| {
            let mut random = Random::new(*seed);
            let mut t = 0.0;
            let marker = |round: usize| {
                t += random.between(10.0, 50.0);
                let rss = 300.0 + 8.0 * round as f64;
                Marker {
                    t: Some(t),
                    ..sample(round, sizes(&[(Size::Rss, rss)]))
                }
            };
            let rate = finding_of((0..60).map(marker)).hourly.unwrap();
            let truth = 8.0 * MB * 3600.0 / 30.0;
            rate.low <= truth && truth <= rate.high
        };
        let right = (0..200).filter(is_true).count();
        assert!(right >= 184, "{right}");
    }

    pub fn verdict_of(sizes: impl IntoIterator<Item = Sizes>) -> Verdict {
        judge_rounds(sizes).verdict
    }

    /// `n` rounds with these sizes in MB.
    fn rounds<const N: usize>(n: u32, of: impl Fn(f64) -> [(Size, f64); N]) -> Vec<Sizes> {
        (0..n).map(|round| sizes(&of(f64::from(round)))).collect()
    }

    /// `n` rounds with this RSS in MB.
    fn rss(n: u32, mut of: impl FnMut(f64) -> f64) -> Vec<Sizes> {
        let one = |round| sizes(&[(Size::Rss, of(f64::from(round)))]);
        (0..n).map(one).collect()
    }

    /// The falls of noise at the end of a warm-up explain its curve as teeth that become steeper would.
    #[test]
    fn a_warm_up_that_levels_off_has_no_teeth() {
        let warm_up = [
            451.6, 467.2, 482.6, 490.3, 499.9, 505.7, 512.6, 516.7, 520.9, 522.4, 525.5, 528.8,
            529.8, 531.3, 532.2, 530.6, 532.2, 533.2, 535.3, 534.7, 534.2, 534.3, 536.6, 536.7,
            535.2, 535.7, 534.9, 535.7, 534.2, 536.4,
        ];
        let found = verdict_of(rss(30, |i| warm_up[i as usize]));
        assert_eq!(found, Verdict::Flat);
    }

    #[test]
    fn fewer_than_five_rounds_are_not_enough() {
        for rounds in 1..5 {
            let found = verdict_of(rss(rounds, |i| 100.0 + 50.0 * i));
            assert_eq!(found, Verdict::NotEnoughRounds, "{rounds} rounds");
        }
    }

    #[test]
    fn growth_over_six_rounds_is_warming_up() {
        let found = verdict_of(rss(6, |i| 100.0 + 50.0 * i));
        assert_eq!(found, Verdict::WarmingUp);
    }

    #[test]
    fn growth_that_slows_down_is_warming_up() {
        let found = verdict_of(rss(40, |i| 900.0 - 800.0 * (-i / 15.0).exp()));
        assert_eq!(found, Verdict::WarmingUp);
    }

    #[test]
    fn a_rise_that_saturates_is_neither_growth_nor_unclear() {
        let mut random = Random::new(23);
        let mut is_wrong = |rounds: u32| {
            let noise = 300.0 * [0.0005, 0.002, 0.01][rounds as usize % 3];
            let (height, length) = (random.between(0.2, 0.6), 0.13 * f64::from(rounds));
            let rise = |i: f64| 300.0 * (1.0 + height * (1.0 - (-i / length).exp()));
            let found = verdict_of(rss(rounds, |i| rise(i) + noise * random.normal()));
            !matches!(found, Verdict::Flat | Verdict::WarmingUp)
        };
        let count = (40..200).filter(|rounds| is_wrong(*rounds)).count();
        assert!(count <= 2, "{count}");
    }

    /// Behind the step the leak adds less than what matters over all rounds.
    #[test]
    fn a_leak_beside_one_step_is_growth() {
        let mut random = Random::new(31);
        let mut is_growth = |seed: u32| {
            let (n, height) = (16 + seed % 17, random.between(8.0, 40.0));
            let at = (random.between(0.4, 0.85) * f64::from(n)).floor();
            let leak = random.between(18.0, 48.0) / f64::from(n);
            let level = |i: f64| 200.0 + leak * i + if i >= at { height } else { 0.0 };
            verdict_of(rss(n, |i| level(i) + 0.4 * random.normal())).is_growth()
        };
        let found = (0..100).filter(|seed| is_growth(*seed)).count();
        assert!(found >= 95, "{found}");
    }

    #[test]
    fn a_step_behind_a_warm_up_is_no_growth() {
        let mut random = Random::new(7);
        let mut is_growth = |seed: u32| {
            let (n, length) = (16 + seed % 17, random.between(0.6, 2.5));
            let (height, rise) = (random.between(8.0, 40.0), random.between(10.0, 100.0));
            let at = (random.between(0.4, 0.85) * f64::from(n)).floor();
            let level = |i: f64| if i >= at { 200.0 + height } else { 200.0 };
            let warm = |i: f64| level(i) - rise * (-i / length).exp() + 0.4 * random.normal();
            verdict_of(rss(n, warm)).is_growth()
        };
        let count = (0..400).filter(|seed| is_growth(*seed)).count();
        assert!(count <= 5, "{count}");
    }

    /// The warm-up ends in the third round, and not where it begins.
    #[test]
    fn a_step_behind_a_warm_up_of_two_rounds_is_one_step() {
        let level = |i: f64| [-137.0, -33.0, 0.0][i.min(2.0) as usize];
        let ripple = |i: f64| 0.1 * (7.3 * i).sin();
        let step = |i: f64| if i >= 15.0 { 51.0 } else { 0.0 };
        let found = judge_rounds(rounds(24, |i| {
            [(Size::Rss, 291.5 + level(i) + step(i) + ripple(i))]
        }));
        assert_eq!((found.verdict, found.steps.len()), (Verdict::Flat, 1));
    }

    #[test]
    fn steps_that_do_not_matter_one_by_one_are_growth_and_no_level() {
        let mut random = Random::new(5);
        let steps = |i: f64| 20.0 * (i / 16.0).floor();
        let mut is_growth =
            |_| verdict_of(rss(60, |i| 1000.0 + steps(i) + 0.3 * random.normal())).is_growth();
        let count = (0..20).filter(|n| is_growth(*n)).count();
        assert!(count > 15, "{count}");
    }

    #[test]
    fn a_step_beside_a_larger_one_is_no_growth_even_if_it_is_smaller_than_matters() {
        let mut random = Random::new(11);
        let steps = [(0.0, 167.0), (35.0, 12.0), (72.0, 4.7)];
        let level = |i: f64| -> f64 {
            let taken = steps.iter().filter(|(at, _)| i >= *at);
            taken.map(|(_, height)| height).sum()
        };
        let found = verdict_of(rss(116, |i| level(i) + 0.13 * random.normal()));
        assert_eq!(found, Verdict::Flat);
    }

    #[test]
    fn a_size_that_wanders_far_is_not_flat_with_a_trend_that_matters() {
        let mut random = Random::new(17);
        let mut vague = 0;
        for n in 20..220 {
            let mut at = 1000.0;
            let finding = judge_rounds(rss(20 + n % 40, |_| {
                at += 25.0 * random.normal();
                at
            }));
            let (slope, threshold) = (finding.trend.slope, finding.trend.threshold);
            let is_open =
                slope.value.abs() > 1.5 * threshold && slope.high - slope.value > 10.0 * threshold;
            vague += usize::from(is_open);
            assert!(!is_open || finding.verdict != Verdict::Flat, "{slope:?}");
        }
        assert!(vague > 20, "{vague}");
    }

    #[test]
    fn cached_pages_that_come_and_go_are_left_out_beside_a_higher_outlier() {
        let finding = judge_rounds(rounds(20, |i| {
            let cached = if i as u32 % 3 == 1 && i > 3.0 {
                43.0
            } else {
                0.0
            };
            let outlier = if i == 17.0 { 644.0 } else { 0.0 };
            let live = 400.0 - 11.0 * (-i).exp() + outlier;
            [
                (Size::Rss, live + cached),
                (Size::Live, live),
                (Size::Recycled, cached),
            ]
        }));
        let found = (finding.verdict, finding.quantity);
        assert_eq!(found, (Verdict::Flat, Quantity::WithoutCached));
    }

    #[test]
    fn a_rise_that_may_go_on_by_what_matters_is_unclear() {
        let mut random = Random::new(2);
        let mut found = |slope: f64| {
            let level = |i: f64| 100.0 + 12.0 * i.min(15.0) + slope * (i - 15.0).max(0.0);
            verdict_of(rss(40, |i| level(i) + random.normal()))
        };
        let found = [0.0, 0.3, 1.0].map(|slope| [(); 3].map(|()| found(slope)));
        assert_eq!(
            found,
            [
                [Verdict::Flat; 3],
                [Verdict::Unclear; 3],
                [Verdict::Growth; 3]
            ]
        );
    }

    #[test]
    fn three_equal_steps_at_equal_distances_are_unclear_and_other_steps_are_flat() {
        let mut random = Random::new(5);
        let mut found = |steps: [(f64, f64); 3]| {
            let level = |i: f64| {
                let taken = steps.iter().filter(|(at, _)| i >= *at);
                300.0 + taken.map(|(_, height)| height).sum::<f64>()
            };
            verdict_of(rss(20, |i| level(i) + 0.3 * random.normal()))
        };
        let even = found([(5.0, 21.0), (10.0, 20.0), (15.0, 19.0)]);
        let heights = found([(5.0, 21.0), (10.0, 50.0), (15.0, 19.0)]);
        let distances = found([(5.0, 21.0), (8.0, 20.0), (15.0, 19.0)]);
        let expected = (Verdict::Unclear, Verdict::Flat, Verdict::Flat);
        assert_eq!((even, heights, distances), expected);
    }

    /// Bursts are no third of a series, and many short steps are one rise.
    #[test]
    fn teeth_of_few_samples_and_a_ramp_of_few_rounds_are_flat() {
        let noise = |i: f64| (2.39 * i).sin();
        let tooth = |i: f64| 62.0 * ((i + 3.0) % 6.0) + 1060.0 + 3.0 * noise(i);
        let ramp = |i: f64| 270.0 + 97.0 * i.min(4.0) + 9.0 * noise(i);
        let spikes = |i: f64| if i % 6.0 == 0.0 { 600.0 } else { 500.0 };
        let found = [rss(24, tooth), rss(27, ramp), rss(14, spikes)].map(verdict_of);
        assert_eq!(found, [Verdict::Flat; 3]);
    }

    #[test]
    fn a_leak_with_one_fall_does_not_fall() {
        let level = |i: f64| 10.0 * (i - 42.0).max(0.0) - if i >= 66.0 { 418.0 } else { 0.0 };
        let mut random = Random::new(3);
        let mut found = |_| {
            let mut noise = 0.0;
            verdict_of(rss(116, |i| {
                noise = 0.8 * noise + 3.6 * random.normal();
                1390.0 + level(i) + noise
            }))
        };
        let falls = (0..40).filter(|seed| found(*seed) == Verdict::Falling);
        assert_eq!(falls.count(), 0);
    }

    /// The last tooth would be growth.
    #[test]
    fn teeth_of_uneven_length_and_height_are_flat() {
        let teeth = [(6, 95.0), (17, 52.0), (9, 56.0)];
        let tooth = |(length, height): (u32, f64)| {
            (1..=length).map(move |i| 500.0 + height * f64::from(i) / f64::from(length))
        };
        let values: Vec<f64> = teeth.into_iter().flat_map(tooth).collect();
        let found = rss(32, |i| values[i as usize] + 0.5 * (2.39 * i * i).sin());
        assert_eq!(verdict_of(found), Verdict::Flat);
    }

    /// The season steepens the leak once in each period, which is no clear step.
    #[test]
    fn a_leak_that_begins_late_beside_a_season_is_growth() {
        let season = |i: f64| (std::f64::consts::TAU * i / 20.0).sin() + (i - 60.0).max(0.0) / 15.0;
        for height in [30.0, 50.0] {
            let found = |i: f64| 500.0 + height * season(i) + 0.5 * (2.39 * i).sin();
            assert_eq!(verdict_of(rss(120, found)), Verdict::Growth);
        }
    }

    #[test]
    fn growth_that_ended_early_is_flat() {
        let found = verdict_of(rss(60, |i| 100.0 + 20.0 * i.min(25.0)));
        assert_eq!(found, Verdict::Flat);
    }

    /// A recorded process: 4 MB per round, but one page less from round 13 on. The residuals are
    /// autocorrelated, but so small that they do not matter.
    #[test]
    fn a_nearly_perfect_line_after_a_drop_is_growth() {
        let start = [13972.0, 22682.0, 22682.0, 18079.0, 19104.0, 19107.0];
        let line = (0..18).map(|i| 20132.0 + 1025.0 * i as f64 - f64::from(u8::from(i >= 7)));
        let pages: Vec<f64> = start.into_iter().chain(line).collect();
        let found = verdict_of(rss(24, |i| pages[i as usize] * 4096.0 / MB));
        assert_eq!(found, Verdict::Growth);
    }

    #[test]
    fn growth_with_only_rss_known_is_plain_growth() {
        let found = verdict_of(rss(40, |i| 100.0 + 5.0 * i));
        assert_eq!(found, Verdict::Growth);
    }

    #[test]
    fn pages_moved_from_rss_to_swap_are_swap() {
        let swapped = rounds(40, |i| {
            [(Size::Rss, 900.0 - 5.0 * i), (Size::Swap, 5.0 * i)]
        });
        assert_eq!(verdict_of(swapped), Verdict::Swap);
    }

    #[test]
    fn cached_pages_that_were_never_touched_do_not_become_growth_outside_malloc() {
        let finding = judge_rounds(rounds(14, |i| {
            [
                (Size::Rss, 43.0 + 16.0 * i),
                (Size::Anon, 13.5),
                (Size::File, 29.5 + 16.0 * i),
                (Size::Shmem, 0.0),
                (Size::Live, 4.4),
                (Size::Retained, 0.5),
                (Size::Recycled, if i < 2.0 { 64.0 } else { 0.0 }),
                (Size::Swap, 0.0),
            ]
        }));
        assert_eq!(finding.causes[0].kind, MemoryKind::File);
        assert!(finding.causes[0].share > 0.9, "{}", finding.causes[0].share);
    }

    #[test]
    fn markers_of_one_round_are_not_growth_per_round() {
        let marker = |seq: usize| {
            let is_round = seq < 6;
            Marker {
                round: is_round.then_some(seq as i64),
                stage: if is_round { "train" } else { "grow" }.into(),
                ..sample(seq, sizes(&[(Size::Rss, 100.0 + 10.0 * seq as f64)]))
            }
        };
        let finding = finding_of((0..20).map(marker));
        let found = (finding.unit, finding.series.rounds, &*finding.series.stage);
        assert_eq!(found, (Unit::Marker, 14, "grow"));
    }

    #[test]
    fn gaps_in_a_size_do_not_hide_its_growth() {
        let gaps = rounds(40, |i| {
            let live = 200.0 + 10.0 * i;
            let live = if i % 9.0 == 4.0 { f64::NAN } else { live };
            [(Size::Rss, 300.0 + 10.0 * i), (Size::Live, live)]
        });
        assert_eq!(verdict_of(gaps), Verdict::LiveGrowth);
    }

    #[test]
    fn growth_of_live_memory_within_constant_rss_is_live_growth() {
        let constant_rss = rounds(40, |i| [(Size::Rss, 900.0), (Size::Live, 300.0 + 10.0 * i)]);
        assert_eq!(verdict_of(constant_rss), Verdict::LiveGrowth);
    }

    #[test]
    fn the_slope_is_within_its_interval_and_equals_that_of_the_stage() {
        let mut random = Random::new(5);
        for rounds in [5, 6, 9, 17, 40] {
            let finding = judge_rounds(rss(rounds, |i| {
                400.0 + 1.4 * i + random.between(-9.0, 9.0) - if i == 3.0 { 60.0 } else { 0.0 }
            }));
            let slope = finding.trend.slope;
            let inside = slope.low < slope.value && slope.value < slope.high;
            assert!(inside, "{slope:?}");
            assert_eq!(finding.stages[0].slope, Some(slope));
        }
    }

    #[test]
    fn periodic_markers_between_regular_stages_show_only_the_peak_of_the_round() {
        let marker = |seq: usize| {
            let is_stage = seq.is_multiple_of(2);
            let rss = if is_stage {
                500.0
            } else {
                600.0 + 20.0 * seq as f64
            };
            Marker {
                round: is_stage.then_some(seq as i64 / 2),
                stage: if is_stage { "send" } else { "periodic" }.into(),
                t: Some(60.0 * seq as f64),
                ..sample(seq, sizes(&[(Size::Rss, rss)]))
            }
        };
        let finding = finding_of((0..48).map(marker));
        let found = (finding.quantity, &*finding.series.stage);
        assert_eq!(found, (Quantity::Peak, "send"));
    }

    #[test]
    fn processes_that_follow_each_other_are_not_judged_at_load() {
        let marker = |seq: usize| {
            let (round, stage) = (seq / 3, seq % 3);
            Marker {
                pid: Some(1000 + round as u32),
                round: (stage > 0).then_some(round as i64),
                stage: ["load", "receive", "send"][stage].into(),
                ..sample(stage, sizes(&[(Size::Rss, [5.0, 500.0, 300.0][stage])]))
            }
        };
        let finding = finding_of((0..36).map(|seq| Marker {
            t: Some(seq as f64),
            ..marker(seq)
        }));
        assert_eq!(finding.process.processes, 12);
        assert_eq!(&*finding.series.stage, "send");
    }

    #[test]
    fn a_stage_that_grows_decides_even_if_another_is_flat() {
        let marker = |seq: usize| {
            let (round, low) = (seq / 2, seq.is_multiple_of(2));
            let stage = if low { "send" } else { "receive" };
            let rss = if low {
                300.0
            } else {
                500.0 + 23.0 * round as f64
            };
            Marker {
                round: Some(round as i64),
                stage: stage.into(),
                ..sample(seq, sizes(&[(Size::Rss, rss)]))
            }
        };
        let finding = finding_of((0..48).map(marker));
        let found = (finding.verdict, &*finding.series.stage);
        assert_eq!(found, (Verdict::Growth, "receive"));
        let mut stages = finding.stages.iter();
        assert!(stages.any(|stage| stage.slope == Some(finding.trend.slope)));
    }

    #[test]
    fn a_small_rise_is_flat_with_any_noise() {
        let mut random = Random::new(11);
        for jitter in [0.0, 0.01, 0.1, 0.3] {
            let found = verdict_of(rss(24, |i| {
                95.0 + 0.1 * i + random.between(-jitter, jitter)
            }));
            assert_eq!(found, Verdict::Flat, "{jitter}");
        }
    }

    #[test]
    fn a_small_rise_over_many_rounds_is_growth() {
        let found = verdict_of(rss(400, |i| 95.0 + 0.1 * i));
        assert_eq!(found, Verdict::Growth);
    }

    #[test]
    fn a_rise_that_adds_too_little_is_flat() {
        let found = verdict_of(rss(20, |i| 220.0 + 0.28 * i));
        assert_eq!(found, Verdict::Flat);
    }

    #[test]
    fn mixed_causes_have_their_shares_of_the_growth() {
        let finding = judge_rounds(rounds(30, |i| {
            [
                (Size::Live, 200.0 + 6.0 * i),
                (Size::Retained, 50.0 + 3.0 * i),
                (Size::Recycled, 0.0),
                (Size::Rss, 330.0 + 10.0 * i),
            ]
        }));
        assert_eq!(finding.verdict, Verdict::LiveGrowth);
        let percent = |cause: &Cause| (cause.kind, (100.0 * cause.share).round() as i64);
        let shares: Vec<(MemoryKind, i64)> = finding.causes.iter().map(percent).collect();
        let expected = [
            (MemoryKind::Live, 60),
            (MemoryKind::KeptFree, 30),
            (MemoryKind::OutsideMalloc, 10),
        ];
        assert_eq!(shares, expected);
    }

    #[test]
    fn a_sawtooth_is_flat_and_rising_lows_are_growth() {
        for (period, rounds) in [(2.0, 24), (5.0, 48), (7.0, 20), (7.0, 24), (12.0, 48)] {
            let tooth = |i: f64| 300.0 + 40.0 * (i % period);
            assert_eq!(verdict_of(rss(rounds, tooth)), Verdict::Flat, "{period}");
            let rising = rss(rounds, |i| tooth(i) + 4.0 * i);
            assert_eq!(verdict_of(rising), Verdict::Growth, "{period}");
        }
    }

    #[test]
    fn noise_far_above_a_possible_rise_is_unclear() {
        let mut random = Random::new(3);
        let found = verdict_of(rss(8, |i| 300.0 + 2.0 * i + random.between(0.0, 900.0)));
        assert_eq!(found, Verdict::Unclear);
    }

    #[test]
    fn steps_are_named_with_their_round_and_kind_of_memory() {
        let steps = |size: Size, at: Vec<f64>| {
            judge_rounds(rounds(40, |i| {
                let height = 120.0 * at.iter().filter(|at| i >= **at).count() as f64;
                let known = [
                    (Size::Live, 200.0),
                    (Size::Retained, 60.0),
                    (Size::Recycled, 0.0),
                ];
                let part = |of: Size| if of == size { height } else { 0.0 };
                let [live, retained, recycled] = known.map(|(of, mb)| (of, mb + part(of)));
                [live, retained, recycled, (Size::Rss, 300.0 + height)]
            }))
        };
        for (size, kind) in [
            (Size::Live, MemoryKind::Live),
            (Size::Retained, MemoryKind::KeptFree),
        ] {
            for at in [vec![20.0], vec![6.0, 20.0, 30.0]] {
                let finding = steps(size, at.clone());
                assert_eq!(finding.verdict, Verdict::Flat);
                let found: Vec<f64> = finding.steps.iter().map(|step| step.at).collect();
                assert_eq!(found, at);
                assert!(finding.steps.iter().all(|step| step.kind == kind));
                assert!((finding.steps[0].bytes / MB - 120.0).abs() < 1.0);
            }
        }
    }

    #[test]
    fn falling_memory_is_falling() {
        let found = verdict_of(rss(40, |i| 900.0 - 5.0 * i));
        assert_eq!(found, Verdict::Falling);
    }

    /// Five rounds in five minutes of each hour, 0.4 MB per round: 2 MB per hour.
    #[test]
    fn rates_per_hour_count_the_pauses_between_quick_rounds() {
        let marker = |round: usize| Marker {
            t: Some(3600.0 * (round / 5) as f64 + 60.0 * (round % 5) as f64),
            ..sample(round, sizes(&[(Size::Rss, 300.0 + 0.4 * round as f64)]))
        };
        let finding = finding_of((0..60).map(marker));
        let hourly = finding.hourly.unwrap();
        let [low, middle, high] = [hourly.low, hourly.value, hourly.high].map(|b| b / MB);
        assert!(low < 2.0 && 2.0 < high, "{low} {high}");
        assert!(
            (1.9..2.2).contains(&middle) && high < 2.6,
            "{middle} {high}"
        );
    }

    /// Swarm learning: a client's task has no round, but its training has.
    #[test]
    fn a_stage_without_rounds_is_judged_by_the_rounds_of_the_process() {
        let marker = |seq: usize| {
            let (round, stage) = (seq / 3, ["train", "trim", "trim"][seq % 3]);
            Marker {
                round: (stage == "train").then_some(round as i64),
                stage: stage.into(),
                ..sample(seq, sizes(&[(Size::Rss, 300.0 + 9.0 * round as f64)]))
            }
        };
        let process = &processes((0..60).map(marker))[0];
        let series = process.series("trim").unwrap();
        assert_eq!(
            (series.unit(), series.rounds, series.len()),
            (Unit::Round, 20, 40)
        );
        for stage in finding_of((0..60).map(marker)).stages {
            let per_round = stage.slope.unwrap().value / MB;
            assert!((per_round - 9.0).abs() < 0.5, "{per_round}");
        }
    }

    /// Two trainers of one NVFlare job, in MB at `send`: glibc keeps 15 MB in some rounds.
    #[test]
    fn recorded_twins_of_one_job_are_flat() {
        let site_1 = [
            119.0, 105.0, 106.0, 104.0, 122.0, 125.0, 127.0, 127.0, 127.0, 121.0, 125.0, 123.0,
            127.0, 124.0, 106.0, 107.0, 107.0, 122.0, 123.0, 125.0, 124.0, 108.0, 107.0, 108.0,
            109.0, 113.0, 110.0, 114.0, 115.0, 113.0, 116.0, 100.0, 113.0, 114.0, 113.0, 132.0,
            131.0, 131.0, 131.0, 131.0, 121.0, 131.0, 119.0, 129.0, 120.0, 108.0, 120.0, 114.0,
            116.0, 113.0, 130.0, 131.0, 133.0, 133.0, 131.0, 113.0, 114.0, 113.0, 114.0, 114.0,
        ];
        let site_2 = [
            121.0, 119.0, 105.0, 126.0, 124.0, 121.0, 122.0, 123.0, 121.0, 125.0, 121.0, 123.0,
            128.0, 107.0, 126.0, 114.0, 109.0, 124.0, 122.0, 125.0, 123.0, 124.0, 129.0, 126.0,
            128.0, 121.0, 114.0, 113.0, 108.0, 113.0, 114.0, 113.0, 114.0, 114.0, 113.0, 120.0,
            129.0, 130.0, 129.0, 131.0, 126.0, 115.0, 113.0, 114.0, 113.0, 129.0, 113.0, 114.0,
            115.0, 114.0, 108.0, 124.0, 128.0, 129.0, 115.0, 114.0, 115.0, 114.0, 110.0, 114.0,
        ];
        for recorded in [site_1, site_2] {
            let found = verdict_of(rss(60, |i| recorded[i as usize]));
            assert_eq!(found, Verdict::Flat);
        }
    }

    /// Beside rounds, the growth of periodic markers per minute is not one per round: during an import
    /// of 20 seconds it is large.
    #[test]
    fn the_growth_per_minute_of_periodic_markers_is_not_shown_beside_rounds() {
        let marker = |seq: usize, t: f64, stage: &'static str, rss: f64| Marker {
            seq: Some(seq as u64),
            round: (stage == "send").then(|| seq as i64 - 20),
            stage: stage.into(),
            t: Some(t),
            ..sample(0, sizes(&[(Size::Rss, rss)]))
        };
        let import = (0..20).map(|i| marker(i, i as f64, "periodic", 5.0 + 10.0 * i as f64));
        let rounds = (20..40).map(|i| marker(i, 60.0 * i as f64, "send", 200.0));
        let finding = finding_of(import.chain(rounds));
        assert_eq!(
            (finding.verdict, finding.unit),
            (Verdict::Flat, Unit::Round)
        );
        let growth: Vec<_> = finding.stages.iter().map(|s| s.slope.is_some()).collect();
        assert_eq!(growth, [false, true]);
    }

    #[test]
    fn the_start_of_a_process_with_few_rounds_is_not_judged() {
        let finding = |rounds: usize, waits: usize, growth: f64| {
            let marker = |seq: usize, stage: &'static str, rss: f64| Marker {
                seq: Some(seq as u64),
                round: (stage == "send").then(|| seq as i64 - 8),
                stage: stage.into(),
                t: Some(60.0 * seq as f64),
                ..sample(0, sizes(&[(Size::Rss, rss)]))
            };
            let import = (0..8).map(|i| marker(i, "periodic", 5.0 + 100.0 * i as f64));
            let rounds = (8..8 + rounds).map(|i| marker(i, "send", 900.0));
            let waits =
                (20..20 + waits).map(|i| marker(i, "periodic", 900.0 + growth * (i - 20) as f64));
            finding_of(import.chain(rounds).chain(waits))
        };
        let few = finding(3, 0, 0.0);
        assert_eq!(
            (few.verdict, &*few.series.stage),
            (Verdict::NotEnoughRounds, "send")
        );
        assert_eq!(&*finding(0, 0, 0.0).series.stage, "periodic");
        assert_eq!(finding(3, 5, 0.0).verdict, Verdict::NotEnoughRounds);
        for waits in 6..12 {
            assert_eq!(finding(3, waits, 0.0).verdict, Verdict::Flat, "{waits}");
        }
        assert_eq!(finding(1, 12, 100.0).verdict, Verdict::Growth);
    }

    #[test]
    fn a_fall_long_after_an_import_is_named_at_its_minute() {
        let marker = |(seq, (t, rss)): (usize, (f64, f64))| Marker {
            round: None,
            stage: "periodic".into(),
            t: Some(t),
            ..sample(seq, sizes(&[(Size::Rss, rss)]))
        };
        let import = (0..10).map(|i| (3.0 * i as f64, 120.0 + 20.0 * i as f64));
        let later = [(1200.0, 100.0), (2400.0, 101.0)];
        let markers = import.chain(later).enumerate().map(marker);
        let finding = finding_of(markers);
        let steps = finding.steps.iter().map(|step| (step.at, step.bytes / MB));
        assert_eq!(steps.collect::<Vec<_>>(), [(20.0, -200.0)]);
        assert_eq!((finding.verdict, finding.trend.warm_up), (Verdict::Flat, 9));
    }

    /// A program without stages writes a marker per minute, and none while its memory is unchanged.
    #[test]
    fn periodic_markers_are_judged_per_minute() {
        let mut minute = 0.0;
        let marker = |seq: usize| {
            minute += if seq % 4 == 3 { 8.0 } else { 1.0 };
            Marker {
                round: None,
                stage: "periodic".into(),
                t: Some(60.0 * minute),
                ..sample(seq, sizes(&[(Size::Rss, 300.0 + 2.0 * minute)]))
            }
        };
        let finding = finding_of((0..20).map(marker));
        assert_eq!(
            (finding.verdict, finding.unit),
            (Verdict::Growth, Unit::Minute)
        );
        assert_eq!(
            (finding.series.rounds, finding.rounds_unit()),
            (20, Unit::Marker)
        );
        let slope = finding.trend.slope.value / MB;
        assert!((slope - 2.0).abs() < 0.01, "{slope}");
        assert_eq!(finding.pace.unwrap().seconds.value, 60.0);
    }
}
