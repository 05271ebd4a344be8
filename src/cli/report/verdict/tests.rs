//! Whole processes whose truth is known: is the verdict right, over many seeds?

use super::*;
use crate::report::model::{Place, Sample, Store};
use crate::report::stats::random::Random;
use crate::report::stats::synthetic::{self, Form, Setting};

const SEEDS: u64 = 250;

/// The part of memory that follows the form.
const PARTS: [(Size, Verdict); 4] = [
    (Size::Live, Verdict::LiveGrowth),
    (Size::Retained, Verdict::Retention),
    (Size::File, Verdict::FileBacked),
    (Size::Swap, Verdict::Swap),
];

fn sample(round: usize, sizes: Sizes) -> Sample<'static> {
    Sample {
        pid: Some(7),
        start: Some(1),
        proc: "TR".into(),
        role: None,
        site: Some("site-1".into()),
        round: Some(round as i64),
        stage: "send".into(),
        alloc: Some("glibc".into()),
        t: Some(10.0 * round as f64),
        seq: Some(round as u64),
        sizes,
        hwm: f64::NAN,
        limit: f64::NAN,
        version: 1.0,
    }
}

fn verdict_of(sizes: impl IntoIterator<Item = Sizes>) -> Verdict {
    let mut store = Store::default();
    let place = Place {
        log: "x",
        epoch: 0.0,
        line: 1,
    };
    for (round, sizes) in sizes.into_iter().enumerate() {
        store.add(&sample(round, sizes), &place);
    }
    judge(&store.finish()[0]).unwrap().verdict
}

/// Noise and warm-up shake live and retained memory; the form is added to one part.
fn process(setting: &Setting, random: &mut Random, part: Size, form: &Form) -> Vec<Sizes> {
    let shaken = setting.series(random, |_| 0.0);
    let level = setting.level;
    let one = |(round, v): (usize, f64)| {
        let shake = v - level;
        let mut sizes = Sizes([
            f64::NAN,
            0.0,
            0.15 * level,
            0.0,
            0.0,
            0.0,
            0.0,
            0.0,
            f64::NAN,
        ]);
        sizes[Size::Live] = 0.6 * level + 0.7 * shake;
        sizes[Size::Retained] = 0.15 * level + 0.2 * shake;
        sizes[Size::Recycled] = 0.05 * level + 0.1 * shake;
        sizes[part] += form(round as f64);
        let outside = 0.05 * level;
        sizes[Size::Anon] = sizes[Size::Live] + sizes.held_back() + outside;
        sizes[Size::Rss] = sizes[Size::Anon] + sizes[Size::File];
        sizes
    };
    shaken.into_iter().enumerate().map(one).collect()
}

fn assert_right(name: &str, make: fn(&Setting, &mut Random) -> Form, grows: bool) {
    for (part, when_growing) in PARTS {
        let expected = if grows { when_growing } else { Verdict::Flat };
        let right = (0..SEEDS).filter(|&seed| {
            let mut random = Random::new(seed + 1000);
            let setting = Setting::draw(&mut random);
            let form = make(&setting, &mut random);
            let found = verdict_of(process(&setting, &mut random, part, &form));
            if found != expected && std::env::var_os("FLARENA_TEST_WRONG").is_some() {
                eprintln!(
                    "{name} {part:?} seed {seed}: {found:?}, {} rounds",
                    setting.rounds
                );
            }
            found == expected
        });
        let share = right.count() as f64 / SEEDS as f64;
        println!(
            "{name} in {part:?}: {:.1} % of {SEEDS} right",
            100.0 * share
        );
        assert!(
            share >= 0.99,
            "{name} in {part:?}: only {:.1} % right",
            100.0 * share
        );
    }
}

#[test]
fn noisy_level_processes_are_flat() {
    assert_right("flat", synthetic::flat, false);
}

#[test]
fn leaking_processes_get_the_verdict_of_what_leaks() {
    assert_right("leaking", synthetic::leaking, true);
}

#[test]
fn stepping_processes_get_the_verdict_of_what_steps() {
    assert_right("stepping", synthetic::stepping, true);
}

#[test]
fn processes_that_jumped_once_are_flat() {
    assert_right("one jump", synthetic::one_jump, false);
}

#[test]
fn sawtooth_processes_are_flat() {
    assert_right("sawtooth", synthetic::sawtooth, false);
}

#[test]
fn rising_sawtooth_processes_get_the_verdict_of_what_rises() {
    assert_right("rising sawtooth", synthetic::rising_sawtooth, true);
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
