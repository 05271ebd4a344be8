//! Processes whose garbage is known: what the report makes of it.

use crate::report::analyse::finding::Verdict;
use crate::report::analyse::fixtures::{judged, sample, sizes};
use crate::report::explain;
use crate::report::model::{Sample, Size};
use crate::report::units::MB;

/// A process of 100 MB whose live memory is given in MB, by round, and what was collected before.
fn verdict_of(rounds: &[(f64, f64)]) -> (Verdict, String) {
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
    let (process, finding) = judged(rounds.iter().enumerate().map(marker));
    let sentence = explain::sentence(&process, &finding);
    (finding.verdict, sentence)
}

/// `height` MB more each round; every `period` rounds they are collected. `leak` MB stay.
fn sawtooth(rounds: usize, period: usize, height: f64, leak: f64) -> Vec<(f64, f64)> {
    let one = |round: usize| {
        let teeth = (round % period) as f64 * height;
        let collected = round > 0 && round.is_multiple_of(period);
        let gathered = if collected { period - 1 } else { 0 };
        let live = 250.0 + teeth + leak * round as f64;
        (live, gathered as f64 * height)
    };
    (0..rounds).map(one).collect()
}

#[test]
fn a_sawtooth_of_live_memory_is_cyclic_garbage() {
    let few = [(17, 8), (24, 8), (30, 8), (40, 8)];
    for (rounds, period) in few.into_iter().chain([(31, 6), (60, 12), (23, 11)]) {
        let (verdict, sentence) = verdict_of(&sawtooth(rounds, period, 64.0, 0.0));
        assert_eq!(
            verdict,
            Verdict::CyclicGarbage,
            "{rounds}/{period}: {sentence}"
        );
    }
}

#[test]
fn nvflares_server_job_is_cyclic_garbage() {
    // Live MB after each aggregation of twelve rounds, as measured.
    let live = [
        267.0, 334.0, 396.0, 266.0, 392.0, 528.0, 587.0, 724.0, 721.0, 851.0, 922.0, 328.0,
    ];
    let mut before = 0.0;
    let rounds = live.into_iter().map(|now| {
        let released = f64::max(before - now, 0.0);
        before = now;
        (
            now,
            if released > 10.0 {
                released + 64.0
            } else {
                0.0
            },
        )
    });
    let (verdict, sentence) = verdict_of(&rounds.collect::<Vec<_>>());
    assert_eq!(verdict, Verdict::CyclicGarbage, "{sentence}");
    assert!(sentence.contains("2 released"), "{sentence}");
}

#[test]
fn a_leak_is_a_leak_though_garbage_is_collected_on_the_way() {
    for leak in [16.0, 64.0] {
        let (verdict, sentence) = verdict_of(&sawtooth(48, 4, 8.0, leak));
        assert_eq!(verdict, Verdict::LiveGrowth, "{leak}: {sentence}");
    }
}

#[test]
fn a_leak_below_large_teeth_is_told_with_what_collections_leave() {
    let (verdict, sentence) = verdict_of(&sawtooth(48, 12, 20.0, 2.5));
    assert_eq!(verdict, Verdict::LiveGrowth, "{sentence}");
    assert!(
        sentence.starts_with("what full garbage collections leave grows by +2.5"),
        "{sentence}"
    );
}

#[test]
fn garbage_that_is_collected_in_time_leaves_the_process_flat_and_is_told() {
    let rounds: Vec<_> = (0..30)
        .map(|n| (250.0, if n % 3 == 0 { 64.0 } else { 0.0 }))
        .collect();
    let (verdict, sentence) = verdict_of(&rounds);
    assert_eq!(verdict, Verdict::Flat, "{sentence}");
    assert!(
        sentence.contains("10 of its collections released 640.0 MB"),
        "{sentence}"
    );
}

#[test]
fn without_collections_nothing_changes() {
    let (verdict, sentence) = verdict_of(&[(250.0, f64::NAN); 30]);
    assert_eq!(verdict, Verdict::Flat);
    assert!(!sentence.contains("garbage"), "{sentence}");
}

/// A client of NVFlare: a MB of garbage a message, a collection each tenth round or so.
#[test]
fn garbage_within_bounds_is_flat_by_what_collections_leave() {
    for rounds in [16, 20, 24, 50] {
        let (verdict, sentence) = verdict_of(&sawtooth(rounds, 7, 5.0, 0.0));
        assert_eq!(verdict, Verdict::Flat, "{rounds}: {sentence}");
        assert!(sentence.contains("garbage"), "{rounds}: {sentence}");
    }
}

#[test]
fn a_floor_that_rises_is_not_flat_whatever_is_collected() {
    for (rounds, leak) in [(24, 2.5), (24, 5.0), (48, 2.5), (48, 1.5)] {
        let (verdict, sentence) = verdict_of(&sawtooth(rounds, 6, 5.0, leak));
        assert_ne!(verdict, Verdict::Flat, "{rounds}/{leak}: {sentence}");
    }
}
