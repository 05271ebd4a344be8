//! Whole processes whose truth is known: is the verdict right?

use super::*;
use crate::report::model::{Place, Sample, Store};
use crate::report::stats::random::Random;
use crate::report::stats::series::MIB;

pub fn sample(round: usize, sizes: Sizes) -> Sample<'static> {
    Sample {
        pid: Some(7),
        start: Some(1),
        proc: "TR".into(),
        site: Some("site-1".into()),
        round: Some(round as i64),
        stage: "send".into(),
        alloc: Some("glibc".into()),
        t: Some(10.0 * round as f64),
        seq: Some(round as u64),
        sizes,
        ..Sample::default()
    }
}

fn found(sizes: impl IntoIterator<Item = Sizes>) -> (Finding, Vec<Trend>) {
    let mut store = Store::default();
    let place = Place::ANY;
    for (round, sizes) in sizes.into_iter().enumerate() {
        store.add(&sample(round, sizes), &place);
    }
    judge(&store.finish().0[0]).unwrap()
}

pub fn verdict_of(sizes: impl IntoIterator<Item = Sizes>) -> Verdict {
    found(sizes).0.verdict
}

fn rss(megabytes: impl IntoIterator<Item = f64>) -> Vec<Sizes> {
    let sizes = |mb: f64| {
        let mut sizes = Sizes::UNKNOWN;
        sizes[Size::Rss] = mb * 1024.0 * 1024.0;
        sizes
    };
    megabytes.into_iter().map(sizes).collect()
}

#[test]
fn a_few_rounds_are_not_enough() {
    for rounds in 1..5 {
        let found = verdict_of(rss((0..rounds).map(|i| 100.0 + 50.0 * i as f64)));
        assert_eq!(found, Verdict::NotEnoughRounds, "{rounds} rounds");
    }
}

#[test]
fn growth_in_the_first_rounds_is_warming_up() {
    assert_eq!(
        verdict_of(rss((0..6).map(|i| 100.0 + 50.0 * i as f64))),
        Verdict::WarmingUp
    );
}

#[test]
fn growth_that_slows_down_is_warming_up() {
    let found = verdict_of(rss(
        (0..40).map(|i| 900.0 - 800.0 * (-i as f64 / 15.0).exp())
    ));
    assert_eq!(found, Verdict::WarmingUp);
}

#[test]
fn growth_that_ended_is_flat() {
    let found = verdict_of(rss((0..60).map(|i| 100.0 + 20.0 * f64::min(i as f64, 25.0))));
    assert_eq!(found, Verdict::Flat);
}

/// As recorded: 4 MB a round, but a page less in round 13, so that what the slope leaves over hangs
/// together. That is no doubt about the slope.
#[test]
fn a_nearly_perfect_line_after_a_drop_is_growth() {
    const PAGE: f64 = 4096.0;
    let start = [13972.0, 22682.0, 22682.0, 18079.0, 19104.0, 19107.0];
    let line = (0..18).map(|i| 20132.0 + 1025.0 * i as f64 - f64::from(u8::from(i >= 7)));
    let pages = start.into_iter().chain(line);
    let sizes = rss(pages.map(|pages| pages * PAGE / (1024.0 * 1024.0)));
    assert_eq!(verdict_of(sizes), Verdict::Growth);
}

#[test]
fn growth_of_rss_alone_names_no_culprit() {
    assert_eq!(
        verdict_of(rss((0..40).map(|i| 100.0 + 5.0 * i as f64))),
        Verdict::Growth
    );
}

#[test]
fn pages_pushed_out_to_swap_are_not_flat() {
    let sizes = rss((0..40).map(|i| 900.0 - 5.0 * i as f64))
        .into_iter()
        .enumerate();
    let pushed = sizes.map(|(i, mut sizes)| {
        sizes[Size::Swap] = 5.0 * i as f64 * 1024.0 * 1024.0;
        sizes
    });
    assert_eq!(verdict_of(pushed), Verdict::Swap);
}

#[test]
fn pages_that_hibernate_were_not_pushed_out() {
    let sizes = rss((0..40).map(|i| 900.0 - 5.0 * i as f64))
        .into_iter()
        .enumerate();
    let asleep = sizes.map(|(i, mut sizes)| {
        sizes[Size::Swap] = 5.0 * i as f64 * 1024.0 * 1024.0;
        sizes[Size::Hibernated] = sizes[Size::Swap];
        sizes
    });
    assert_eq!(verdict_of(asleep), Verdict::Flat);
}

#[test]
fn a_few_markers_without_a_size_do_not_hide_who_grows() {
    let sizes = rss((0..40).map(|i| 300.0 + 10.0 * i as f64))
        .into_iter()
        .enumerate();
    let gaps = sizes.map(|(i, mut sizes)| {
        let live = (200.0 + 10.0 * i as f64) * 1024.0 * 1024.0;
        sizes[Size::Live] = if i % 9 == 4 { f64::NAN } else { live };
        sizes
    });
    assert_eq!(verdict_of(gaps), Verdict::LiveGrowth);
}

#[test]
fn a_leak_into_pages_that_the_allocator_had_left_is_live_growth() {
    let sizes = rss((0..40).map(|_| 900.0)).into_iter().enumerate();
    let unseen = sizes.map(|(i, mut sizes)| {
        sizes[Size::Live] = (300.0 + 10.0 * i as f64) * 1024.0 * 1024.0;
        sizes
    });
    assert_eq!(verdict_of(unseen), Verdict::LiveGrowth);
}

/// Live, free, and other memory of each round in MB; RSS is their sum.
fn split(rounds: usize, of: impl Fn(f64) -> [f64; 3]) -> Vec<Sizes> {
    let one = |round: usize| {
        let [live, free, other] = of(round as f64).map(|megabytes| megabytes * MIB);
        let mut sizes = Sizes::UNKNOWN;
        (sizes[Size::Live], sizes[Size::Retained]) = (live, free);
        sizes[Size::Recycled] = 0.0;
        sizes[Size::Rss] = live + free + other;
        sizes
    };
    (0..rounds).map(one).collect()
}

/// Seen: a slope of +1.39 MB with the interval -6.98 to -6.98.
#[test]
fn the_slope_lies_inside_its_interval_and_the_stage_shows_the_same_numbers() {
    let mut random = Random::new(5);
    for rounds in [5, 6, 9, 17, 40] {
        let (finding, stages) = found(rss((0..rounds).map(|i| {
            400.0 + 1.4 * i as f64 + random.between(-9.0, 9.0) - if i == 3 { 60.0 } else { 0.0 }
        })));
        let slope = finding.trend.slope;
        assert!(
            slope.low < slope.per_x && slope.per_x < slope.high,
            "{slope:?}"
        );
        assert_eq!(stages[0].slope, slope);
    }
}

/// Seen: +22.4 to +24.1 MB a round, 99.3 % sure, in the table below a green "flat".
#[test]
fn a_stage_that_surely_grows_is_never_below_a_flat_verdict() {
    let mut store = Store::default();
    let place = Place::ANY;
    for round in 0..24 {
        let low = sample(2 * round, rss([300.0])[0]);
        let mut high = sample(2 * round + 1, rss([500.0 + 23.0 * round as f64])[0]);
        (high.round, high.stage) = (Some(round as i64), "receive".into());
        store.add(
            &Sample {
                round: Some(round as i64),
                ..low
            },
            &place,
        );
        store.add(&high, &place);
    }
    let (finding, stages) = judge(&store.finish().0[0]).unwrap();
    assert_eq!(
        (finding.verdict, &*finding.stage),
        (Verdict::Growth, "receive")
    );
    assert!(stages
        .iter()
        .any(|trend| trend.slope == finding.trend.slope));
}

/// Seen: a leak of 0.1 MB a round, flat under one allocator and growing under the other.
#[test]
fn two_processes_of_one_shape_have_one_verdict() {
    let mut random = Random::new(11);
    let mut verdict = |jitter: f64| {
        let mut size = |i: f64| 95.0 + 0.1 * i + random.between(-jitter, jitter);
        verdict_of(rss((0..24).map(|i| size(f64::from(i)))))
    };
    for jitter in [0.0, 0.01, 0.1, 0.3] {
        assert_eq!(verdict(jitter), Verdict::Flat, "{jitter}");
    }
}

#[test]
fn a_small_leak_grows_once_it_was_watched_for_long_enough() {
    assert_eq!(
        verdict_of(rss((0..400).map(|i| 95.0 + 0.1 * f64::from(i)))),
        Verdict::Growth
    );
}

/// Seen: healthy trainers of hello-numpy, red for 0.28 MB a round of 220.
#[test]
fn a_rise_that_adds_next_to_nothing_is_flat() {
    let found = verdict_of(rss((0..20).map(|i| 220.0 + 0.28 * f64::from(i))));
    assert_eq!(found, Verdict::Flat);
}

#[test]
fn mixed_causes_have_their_shares() {
    let (finding, _) = found(split(30, |i| {
        [200.0 + 6.0 * i, 50.0 + 3.0 * i, 80.0 + 1.0 * i]
    }));
    assert_eq!(finding.verdict, Verdict::LiveGrowth);
    let shares: Vec<(Holder, i64)> = finding
        .causes
        .iter()
        .map(|cause| (cause.holder, (100.0 * cause.share).round() as i64))
        .collect();
    let expected = [
        (Holder::Live, 60),
        (Holder::HeldBack, 30),
        (Holder::Outside, 10),
    ];
    assert_eq!(shares, expected);
}

#[test]
fn a_wide_swing_is_not_called_flat() {
    let found = verdict_of(rss((0..20).map(|i| 300.0 + 40.0 * f64::from(i % 7))));
    assert_eq!(found, Verdict::Unclear);
}

/// Programs without stages: a marker a minute while they change, none while they do not.
#[test]
fn markers_at_odd_times_are_judged_by_the_minute() {
    let mut store = Store::default();
    let place = Place::ANY;
    let mut minute = 0;
    for seq in 0..20 {
        minute += if seq % 4 == 3 { 8 } else { 1 };
        let mut marker = sample(seq, rss([300.0 + 2.0 * f64::from(minute)])[0]);
        (marker.round, marker.stage) = (None, "periodic".into());
        marker.t = Some(60.0 * f64::from(minute));
        store.add(&marker, &place);
    }
    let (finding, _) = judge(&store.finish().0[0]).unwrap();
    assert_eq!((finding.verdict, finding.unit), (Verdict::Growth, "minute"));
    assert_eq!((finding.rounds, finding.counted()), (20, "marker"));
    let slope = finding.trend.slope.per_x / MIB;
    assert!((slope - 2.0).abs() < 0.01, "{slope}");
    assert!((finding.seconds_per_unit - 60.0).abs() < 1e-6);
}
