//! Whole processes whose truth is known: is the verdict right?

use super::*;
use crate::report::analyse::fixtures::{judged, processes, sample, sizes};
use crate::report::analyse::stats::random::Random;
use crate::report::model::Sample;
use crate::report::units::MB;

fn found(sizes: impl IntoIterator<Item = Sizes>) -> (Finding, Vec<Trend>) {
    let rounds = sizes.into_iter().enumerate();
    let samples = rounds.map(|(round, sizes)| sample(round, sizes));
    judge(&processes(samples)[0]).unwrap()
}

pub fn verdict_of(sizes: impl IntoIterator<Item = Sizes>) -> Verdict {
    found(sizes).0.verdict
}

/// So many rounds with these sizes in MB.
fn rounds<const N: usize>(n: u32, of: impl Fn(f64) -> [(Size, f64); N]) -> Vec<Sizes> {
    (0..n).map(|round| sizes(&of(f64::from(round)))).collect()
}

/// So many rounds with this RSS in MB.
fn rss(n: u32, mut of: impl FnMut(f64) -> f64) -> Vec<Sizes> {
    let one = |round| sizes(&[(Size::Rss, of(f64::from(round)))]);
    (0..n).map(one).collect()
}

#[test]
fn a_few_rounds_are_not_enough() {
    for rounds in 1..5 {
        let found = verdict_of(rss(rounds, |i| 100.0 + 50.0 * i));
        assert_eq!(found, Verdict::NotEnoughRounds, "{rounds} rounds");
    }
}

#[test]
fn growth_in_the_first_rounds_is_warming_up() {
    let found = verdict_of(rss(6, |i| 100.0 + 50.0 * i));
    assert_eq!(found, Verdict::WarmingUp);
}

#[test]
fn growth_that_slows_down_is_warming_up() {
    let found = verdict_of(rss(40, |i| 900.0 - 800.0 * (-i / 15.0).exp()));
    assert_eq!(found, Verdict::WarmingUp);
}

#[test]
fn growth_that_ended_is_flat() {
    let found = verdict_of(rss(60, |i| 100.0 + 20.0 * i.min(25.0)));
    assert_eq!(found, Verdict::Flat);
}

/// As recorded: 4 MB a round, but a page less in round 13, so that what the slope leaves over hangs
/// together. That is no doubt about the slope.
#[test]
fn a_nearly_perfect_line_after_a_drop_is_growth() {
    let start = [13972.0, 22682.0, 22682.0, 18079.0, 19104.0, 19107.0];
    let line = (0..18).map(|i| 20132.0 + 1025.0 * i as f64 - f64::from(u8::from(i >= 7)));
    let pages: Vec<f64> = start.into_iter().chain(line).collect();
    let found = verdict_of(rss(24, |i| pages[i as usize] * 4096.0 / MB));
    assert_eq!(found, Verdict::Growth);
}

#[test]
fn growth_of_rss_alone_names_no_culprit() {
    let found = verdict_of(rss(40, |i| 100.0 + 5.0 * i));
    assert_eq!(found, Verdict::Growth);
}

#[test]
fn pages_pushed_out_to_swap_are_not_flat() {
    let pushed = rounds(40, |i| {
        [(Size::Rss, 900.0 - 5.0 * i), (Size::Swap, 5.0 * i)]
    });
    assert_eq!(verdict_of(pushed), Verdict::Swap);
}

#[test]
fn pages_that_hibernate_were_not_pushed_out() {
    let asleep = rounds(40, |i| {
        let out = 5.0 * i;
        let rss = 900.0 - out;
        [(Size::Rss, rss), (Size::Swap, out), (Size::Hibernated, out)]
    });
    assert_eq!(verdict_of(asleep), Verdict::Flat);
}

#[test]
fn a_few_markers_without_a_size_do_not_hide_who_grows() {
    let gaps = rounds(40, |i| {
        let live = 200.0 + 10.0 * i;
        let live = if i % 9.0 == 4.0 { f64::NAN } else { live };
        [(Size::Rss, 300.0 + 10.0 * i), (Size::Live, live)]
    });
    assert_eq!(verdict_of(gaps), Verdict::LiveGrowth);
}

#[test]
fn a_leak_into_pages_that_the_allocator_had_left_is_live_growth() {
    let unseen = rounds(40, |i| [(Size::Rss, 900.0), (Size::Live, 300.0 + 10.0 * i)]);
    assert_eq!(verdict_of(unseen), Verdict::LiveGrowth);
}

/// Seen: a slope of +1.39 MB with the interval -6.98 to -6.98.
#[test]
fn the_slope_lies_inside_its_interval_and_the_stage_shows_the_same_numbers() {
    let mut random = Random::new(5);
    for rounds in [5, 6, 9, 17, 40] {
        let (finding, stages) = found(rss(rounds, |i| {
            400.0 + 1.4 * i + random.between(-9.0, 9.0) - if i == 3.0 { 60.0 } else { 0.0 }
        }));
        let slope = finding.trend.slope;
        let inside = slope.low < slope.per_x && slope.per_x < slope.high;
        assert!(inside, "{slope:?}");
        assert_eq!(stages[0].slope, slope);
    }
}

/// Seen: +22.4 to +24.1 MB a round, 99.3 % sure, in the table below a green "flat".
#[test]
fn a_stage_that_surely_grows_is_never_below_a_flat_verdict() {
    let marker = |seq: usize| {
        let (round, low) = (seq / 2, seq.is_multiple_of(2));
        let stage = if low { "send" } else { "receive" };
        let rss = if low {
            300.0
        } else {
            500.0 + 23.0 * round as f64
        };
        Sample {
            round: Some(round as i64),
            stage: stage.into(),
            ..sample(seq, sizes(&[(Size::Rss, rss)]))
        }
    };
    let (finding, stages) = judge(&processes((0..48).map(marker))[0]).unwrap();
    let found = (finding.verdict, &*finding.stage);
    assert_eq!(found, (Verdict::Growth, "receive"));
    assert!(stages
        .iter()
        .any(|trend| trend.slope == finding.trend.slope));
}

/// Seen: a leak of 0.1 MB a round, flat under one allocator and growing under the other.
#[test]
fn two_processes_of_one_shape_have_one_verdict() {
    let mut random = Random::new(11);
    for jitter in [0.0, 0.01, 0.1, 0.3] {
        let found = verdict_of(rss(24, |i| {
            95.0 + 0.1 * i + random.between(-jitter, jitter)
        }));
        assert_eq!(found, Verdict::Flat, "{jitter}");
    }
}

#[test]
fn a_small_leak_grows_once_it_was_watched_for_long_enough() {
    let found = verdict_of(rss(400, |i| 95.0 + 0.1 * i));
    assert_eq!(found, Verdict::Growth);
}

/// Seen: healthy trainers of hello-numpy, red for 0.28 MB a round of 220.
#[test]
fn a_rise_that_adds_next_to_nothing_is_flat() {
    let found = verdict_of(rss(20, |i| 220.0 + 0.28 * i));
    assert_eq!(found, Verdict::Flat);
}

#[test]
fn mixed_causes_have_their_shares() {
    let (finding, _) = found(rounds(30, |i| {
        [
            (Size::Live, 200.0 + 6.0 * i),
            (Size::Retained, 50.0 + 3.0 * i),
            (Size::Recycled, 0.0),
            (Size::Rss, 330.0 + 10.0 * i),
        ]
    }));
    assert_eq!(finding.verdict, Verdict::LiveGrowth);
    let percent = |cause: &Cause| (cause.holder, (100.0 * cause.share).round() as i64);
    let shares: Vec<(Holder, i64)> = finding.causes.iter().map(percent).collect();
    let (live, free, other) = (Holder::Live, Holder::HeldBack, Holder::Outside);
    assert_eq!(shares, [(live, 60), (free, 30), (other, 10)]);
}

#[test]
fn a_wide_swing_is_not_called_flat() {
    let found = verdict_of(rss(20, |i| 300.0 + 40.0 * (i % 7.0)));
    assert_eq!(found, Verdict::Unclear);
}

/// Programs without stages: a marker a minute while they change, none while they do not.
#[test]
fn markers_at_odd_times_are_judged_by_the_minute() {
    let mut minute = 0.0;
    let marker = |seq: usize| {
        minute += if seq % 4 == 3 { 8.0 } else { 1.0 };
        Sample {
            round: None,
            stage: "periodic".into(),
            t: Some(60.0 * minute),
            ..sample(seq, sizes(&[(Size::Rss, 300.0 + 2.0 * minute)]))
        }
    };
    let (_, finding) = judged((0..20).map(marker));
    assert_eq!((finding.verdict, finding.unit), (Verdict::Growth, "minute"));
    assert_eq!((finding.rounds, finding.counted()), (20, "marker"));
    let slope = finding.trend.slope.per_x / MB;
    assert!((slope - 2.0).abs() < 0.01, "{slope}");
    assert!((finding.seconds_per_unit - 60.0).abs() < 1e-6);
}
