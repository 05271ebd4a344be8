//! The evidence for the verdict: one sentence for each.

use super::phrases::{
    counted, growth_clause, name_of, rate, rate_per, rounds_phrase, settled_rounds, shares, steps,
};
use crate::report::analyse::stats::{MIN_ROUNDS, MIN_SETTLED_ROUNDS};
use crate::report::analyse::{Finding, Level, Quantity, Verdict};
use crate::report::model::Collections;
use crate::report::units::{plural, printable, range, rounds_to_zero, size, Amount, MB};

/// The collections of a flat process are mentioned if they released so much.
const MIN_RELEASED: f64 = 32.0 * MB;

pub fn sentence(finding: &Finding) -> String {
    let collections = &finding.process.collections;
    let (quantity, over) = (name_of(finding.quantity, finding), rounds_phrase(finding));
    let unit = finding.rounds_unit();
    let growth = |aside: &str, end: &str| format!("{}{aside}. {end}", growth_clause(finding));
    let shares = |change| shares(finding, change);
    match finding.verdict {
        Verdict::LiveGrowth if finding.quantity == Quantity::Live => {
            let level = level_clause(name_of(finding.level_of, finding), &finding.level);
            growth("", &format!("{level}; whether it grows, too, is not certain yet."))
        }
        Verdict::LiveGrowth => growth(
            &shares("growth"),
            &format!("The program holds more memory each {}.", finding.unit),
        ),
        Verdict::Retention => {
            // At the last marker: a growing size has no typical value.
            let last = finding.series.points().last();
            let kept = size(last.and_then(|point| point.sizes.kept_free()).unwrap_or(0.0));
            let kept = format!("The allocator keeps {kept} that the program does not use.");
            growth(&shares("growth"), &kept)
        }
        Verdict::Growth if finding.quantity == Quantity::Peak => {
            let level = level_clause(name_of(finding.level_of, finding), &finding.level);
            let stage = finding.peak_growth.as_ref();
            let stage = stage.and_then(|peak| peak.before_stage.as_deref());
            let before = stage.map_or(String::new(), |stage| {
                let stage = printable(stage);
                format!("; most of the peaks come before the marker {stage}")
            });
            growth("", &format!("At the markers {level}{before}."))
        }
        Verdict::Growth => growth(
            "",
            "These markers contain only RSS, so they do not show which memory grows.",
        ),
        Verdict::Swap => growth("", "The kernel moves pages to swap."),
        Verdict::FileBacked => growth(
            &shares("growth"),
            match finding.parts.is_mostly_shared() {
                true => "The kernel cannot reclaim shared memory while it is in use.",
                false => "The kernel reclaims file pages when it needs memory.",
            },
        ),
        Verdict::CyclicGarbage => format!(
            "live memory rises and falls by {} {over}. {} Memory after the collections does not grow.",
            size(finding.swing),
            collected(collections),
        ),
        Verdict::Unclear => {
            let (before, rate) = (before(finding), rate(finding, Amount::Change));
            let is_staircase = finding.steps.len() >= 3;
            let has_risen = finding.trend.has_risen_before() && !finding.steps.is_empty();
            let is_open = match has_risen || is_staircase {
                true => "It is not certain that the growth has ended",
                false => "It is not certain yet whether this matters",
            };
            format!("{before}{quantity} changes by {rate} {over}. {is_open}: record more {unit}s.")
        }
        Verdict::WarmingUp => {
            let (rate, kinds) = (rate(finding, Amount::Size), shares("rise"));
            let remark = match settled_rounds(finding) < MIN_SETTLED_ROUNDS as u64 {
                true => format!("These are too few {unit}s to tell a warm-up from growth."),
                false => "The rise slows down.".to_owned(),
            };
            format!("{quantity} rises by {rate} {over}{kinds}. {remark}")
        }
        Verdict::Falling => {
            let fall = finding.trend.slope.negated();
            let rate = rate_per(&fall, finding.unit.name(), Amount::Size);
            format!("{quantity} falls by {rate} {over}.")
        }
        Verdict::Flat => {
            let has_garbage = collections.released >= MIN_RELEASED;
            let garbage = has_garbage.then(|| format!(" {}", collected(collections)));
            before(finding) + &flat(finding) + &cached(finding) + &garbage.unwrap_or_default()
        }
        Verdict::NotEnoughRounds => format!(
            "{}. A verdict needs at least {MIN_ROUNDS}. To call a rise growth, the report needs \
             {MIN_SETTLED_ROUNDS} after the warm-up.",
            counted(finding.series.rounds, finding)
        ),
    }
}

/// `RSS rose by 80.0 MB in the first 6 rounds. 1 step: +120.0 MB at round 20 (live memory). Apart from that, `, or the rise and
/// `Since then `; empty for neither.
fn before(finding: &Finding) -> String {
    let rise = finding.trend.has_risen_before().then(|| {
        let (quantity, bytes) = (
            name_of(finding.quantity, finding),
            size(finding.trend.rise_before),
        );
        let first = match finding.trend.warm_up {
            1 => finding.rounds_unit().to_string(),
            first => counted(first as u64, finding),
        };
        format!("{quantity} rose by {bytes} in the first {first}. ")
    });
    match (rise, steps(finding)) {
        (rise, Some(steps)) => rise.unwrap_or_default() + &steps + ". Apart from that, ",
        (Some(rise), None) => rise + "Since then ",
        (None, None) => String::new(),
    }
}

fn flat(finding: &Finding) -> String {
    let (quantity, over) = (name_of(finding.quantity, finding), rounds_phrase(finding));
    let (unit, rate) = (finding.unit, rate(finding, Amount::Change));
    let (high, threshold) = (finding.trend.slope.high.max(0.0), finding.trend.threshold);
    let excludes = match high < threshold {
        true if rounds_to_zero(high) => "excludes growth".to_owned(),
        true => format!("excludes growth above {}/{unit}", size(high)),
        // Noise, or few rounds.
        false => format!("does not exclude growth up to {}/{unit}", size(high)),
    };
    let matters = match rounds_to_zero(threshold) {
        true => String::new(),
        false => format!("; {}/{unit} or more would matter", size(threshold)),
    };
    match finding.steps.is_empty() {
        true => {
            let level = level_clause(quantity, &finding.level);
            format!("{level} {over}. The trend of {rate} {excludes}{matters}.")
        }
        false => {
            format!("{quantity} changes by {rate} {over}, which {excludes}{matters}.")
        }
    }
}

/// ` Memory in cached pages is mostly between 0 and 8.00 MB; it is returned at need.`
fn cached(finding: &Finding) -> String {
    if finding.quantity != Quantity::WithoutCached || finding.cached.height() < MB {
        return String::new();
    }
    let level = level_clause("Memory in cached pages", &finding.cached);
    format!(" {level}; it is returned at need.")
}

/// `Cyclic garbage is collected in time: 10 collections released 640.0 MB in 0.1 s.`
fn collected(all: &Collections) -> String {
    let (collections, released) = (plural(all.count, "collection"), size(all.released));
    let time = (all.ms > 0.0).then(|| format!(" in {:.1} s", all.ms / 1000.0));
    let time = time.unwrap_or_default();
    format!("Cyclic garbage is collected in time: {collections} released {released}{time}.")
}

/// `RSS is about 512.3 MB`, or `RSS is mostly between 300.6 and 520.0 MB`
fn level_clause(quantity: &str, level: &Level) -> String {
    /// A wider range is printed instead of the median.
    const MIN_RANGE_SHARE: f64 = 0.2;
    let (low, high) = level.range;
    let range = range(low, "and", high, Amount::Size);
    match () {
        () if level.alternates => format!("{quantity} alternates between {range}"),
        () if level.height() <= MIN_RANGE_SHARE * level.median => {
            format!("{quantity} is about {}", size(level.median))
        }
        () => format!("{quantity} is mostly between {range}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::{analyse, bytes, finding_of, processes, sample, sizes};
    use crate::report::explain::remedy::of_verdict;
    use crate::report::model::site_history_tests::growing;
    use crate::report::model::Size;
    use flarena_shared::marker::Marker;

    /// Sentence and remedy for growth outside malloc, of which a share is in this pool.
    fn explanation_with_pool(pool: Option<Size>, share: f64) -> (String, String) {
        let marker = |round: usize| {
            let grown = 10.0 * round as f64;
            let mut sizes = sizes(&[
                (Size::Rss, 300.0 + grown),
                (Size::Anon, 300.0 + grown),
                (Size::Live, 100.0),
                (Size::Retained, 0.0),
                (Size::Recycled, 0.0),
                (Size::File, 0.0),
                (Size::Shmem, 0.0),
                (Size::Swap, 0.0),
                (Size::Pymalloc, 1.0),
            ]);
            if let Some(pool) = pool {
                sizes.set(pool, Some((50.0 + share * grown) * MB));
            }
            sample(round, sizes)
        };
        let finding = finding_of((0..24).map(marker));
        (sentence(&finding), of_verdict(&finding).unwrap_or_default())
    }

    #[test]
    fn retention_names_what_the_allocator_keeps_now_and_the_sum_of_the_pauses() {
        let marker = |round: usize| {
            let grown = 10.0 * round as f64;
            let known = [
                (Size::Rss, 300.0 + grown),
                (Size::Anon, 300.0 + grown),
                (Size::Live, 100.0),
                (Size::Retained, grown),
                (Size::Recycled, 0.0),
            ];
            let pauses = [10, 20].iter().filter(|pause| round > **pause).count();
            Marker {
                t: Some(20.0 * round as f64 + 10_800.0 * pauses as f64),
                ..sample(round, sizes(&known))
            }
        };
        let finding = finding_of((0..31).map(marker));
        let text = sentence(&finding);
        assert!(
            text.contains("keeps 300.0 MB that the program does not use"),
            "{text}"
        );
        assert!(text.contains("without 6.0 h of pauses"), "{text}");
    }

    #[test]
    fn peaks_that_grow_have_the_level_and_the_stage_of_the_markers_before_and_after() {
        let text = |has_rounds: bool| {
            let marker = |seq: usize| {
                let (round, is_train) = (seq / 2, seq.is_multiple_of(2));
                let peak = if is_train { 40.0 * round as f64 } else { 0.0 };
                Marker {
                    stage: if is_train { "train" } else { "send" }.into(),
                    round: has_rounds.then_some(round as i64),
                    peak_bytes: bytes(400.0 + peak),
                    ..sample(seq, sizes(&[(Size::Rss, 300.0)]))
                }
            };
            let finding = finding_of((0..80).map(marker));
            assert_eq!(finding.quantity, Quantity::Peak);
            let text = sentence(&finding);
            // Processes that follow each other have their peaks as a stage.
            let mut process = processes((0..80).map(marker)).remove(0);
            process.processes = 2;
            let chain = analyse(vec![process]).remove(0);
            assert!(chain.peak_growth.is_none());
            let chain = sentence(&chain);
            assert!(!chain.contains("the peaks come before"), "{chain}");
            text
        };
        let rounds = text(true);
        let start = "the highest RSS between the markers grows by 40.0 MB/round ";
        assert!(rounds.starts_with(start), "{rounds}");
        let end =
            " At the markers RSS is about 300.0 MB; most of the peaks come before the marker train.";
        assert!(rounds.ends_with(end), "{rounds}");
        assert!(!rounds.contains("at stage"), "{rounds}");
        let markers = text(false);
        let start = "the highest RSS between the markers grows by 40.0 MB/marker ";
        assert!(markers.starts_with(start), "{markers}");
    }

    #[test]
    fn growth_from_process_to_process_has_another_remedy_than_a_list() {
        let marker = |round: usize| {
            let live = 20.0 + 10.0 * round as f64;
            sample(
                round,
                sizes(&[(Size::Rss, 10.0 + live), (Size::Live, live)]),
            )
        };
        let mut process = processes((0..24).map(marker)).remove(0);
        process.processes = 24;
        let remedy = of_verdict(&analyse(vec![process])[0]).unwrap();
        assert!(
            remedy.contains("each process starts with empty memory"),
            "{remedy}"
        );
    }

    #[test]
    fn a_pool_with_most_of_the_growth_is_named_with_its_remedy() {
        for (size, name, advice) in [
            (
                Size::Pymalloc,
                "small Python objects",
                "PYTHONMALLOC=malloc",
            ),
            (Size::Arrow, "Arrow tables", "ARROW_DEFAULT_MEMORY_POOL"),
        ] {
            let (_, remedy) = explanation_with_pool(Some(size), 0.8);
            assert!(remedy.contains(name) && remedy.contains(advice), "{remedy}");
        }
    }

    #[test]
    fn a_pool_with_a_small_part_of_the_growth_is_not_named() {
        for (pool, share) in [(None, 0.0), (Some(Size::Arrow), 0.3)] {
            let (sentence, remedy) = explanation_with_pool(pool, share);
            let all = "% of the growth is memory outside malloc. ";
            assert!(sentence.contains(all), "{sentence}");
            assert!(remedy.contains("flarena doctor"), "{remedy}");
            assert!(!remedy.contains("--sites"), "{remedy}");
        }
    }

    #[test]
    fn growth_of_shared_memory_that_pytorch_pins_is_named() {
        let explanation = |pinned_share: f64| {
            let marker = |round: usize| {
                let grown = 10.0 * round as f64;
                let mut sizes = sizes(&[
                    (Size::Rss, 300.0 + grown),
                    (Size::Anon, 280.0),
                    (Size::Live, 100.0),
                    (Size::Retained, 0.0),
                    (Size::Recycled, 0.0),
                    (Size::File, 0.0),
                    (Size::Shmem, 20.0 + grown),
                    (Size::Swap, 0.0),
                ]);
                sizes.set(Size::Pinned, Some((5.0 + pinned_share * grown) * MB));
                sample(round, sizes)
            };
            let finding = finding_of((0..24).map(marker));
            (sentence(&finding), of_verdict(&finding).unwrap_or_default())
        };
        let (text, advice) = explanation(0.9);
        assert!(
            text.contains("memory pinned for the GPU") && text.contains("holds more memory"),
            "{text}"
        );
        assert!(
            advice.contains("flarena.trim()") && !advice.contains("/dev/shm"),
            "{advice}"
        );
        let (text, advice) = explanation(0.1);
        assert!(
            text.contains("90 % of the growth is shared memory"),
            "{text}"
        );
        assert!(advice.contains("/dev/shm"), "{advice}");
    }

    #[test]
    fn a_remedy_points_to_the_lines_below_only_if_one_of_them_grows() {
        let remedy = |held: fn(u64) -> u64| {
            let marker = |round: usize| {
                let live = 20.0 + 10.0 * round as f64;
                let kinds = [(Size::Rss, 10.0 + live), (Size::Live, live)];
                sample(round, sizes(&kinds))
            };
            let mut process = processes((0..24).map(marker)).remove(0);
            process.allocation_sites = growing(&(0..24).map(held).collect::<Vec<_>>());
            of_verdict(&analyse(vec![process])[0]).unwrap_or_default()
        };
        let recorded = remedy(|round| (15 + 10 * round) << 20);
        assert!(recorded.contains("lines below"), "{recorded}");
        let unrecorded = remedy(|_| 1 << 20);
        assert!(!unrecorded.contains("lines below"), "{unrecorded}");
    }

    /// The remedy for free memory that grows, with these settings in force.
    fn remedy_for_retention(
        alloc: &'static str,
        settings: &'static str,
        stages: [&'static str; 2],
    ) -> String {
        let marker = |seq: usize| {
            let (round, stage) = (seq / 2, stages[seq % 2]);
            let kept = 50.0 + 10.0 * round as f64;
            let known = [
                (Size::Rss, 200.0 + kept),
                (Size::Anon, 200.0 + kept),
                (Size::Live, 180.0),
                (Size::Retained, kept),
                (Size::Recycled, 0.0),
            ];
            Marker {
                alloc: alloc.into(),
                settings: Some(settings.into()),
                round: Some(round as i64),
                stage: stage.into(),
                ..sample(seq, sizes(&known))
            }
        };
        let finding = finding_of((0..48).map(marker));
        assert_eq!(finding.verdict, Verdict::Retention);
        of_verdict(&finding).unwrap_or_default()
    }

    #[test]
    fn a_remedy_names_no_setting_that_is_in_force() {
        let stages = ["train", "send"];
        let few = remedy_for_retention("glibc", "", stages);
        assert!(few.contains("JEMALLOC") && !few.contains("ARENA"), "{few}");
        let many = remedy_for_retention("glibc", "MALLOC_ARENA_MAX=64", stages);
        assert!(many.contains("MALLOC_ARENA_MAX=2"), "{many}");
        let slow = remedy_for_retention("jemalloc", "", stages);
        assert!(slow.contains("MALLOC_CONF="), "{slow}");
        let fast = "MALLOC_CONF=dirty_decay_ms:1000,muzzy_decay_ms:0";
        let text = remedy_for_retention("jemalloc", fast, stages);
        assert_eq!(text, "call `flarena.trim()` at the end of each round");
        let text = remedy_for_retention("jemalloc", fast, ["send", "after_trim"]);
        assert!(
            text.starts_with("the settings that help are in force"),
            "{text}"
        );
    }

    #[test]
    fn rss_that_moves_while_live_memory_grows_is_a_range() {
        let marker = |round: usize| {
            let live = 20.0 + 4.0 * round as f64;
            let rss = 150.0 + 40.0 * (round as f64 * 2.39).sin();
            sample(round, sizes(&[(Size::Rss, rss), (Size::Live, live)]))
        };
        let finding = finding_of((0..24).map(marker));
        assert_eq!(finding.quantity, Quantity::Live);
        let text = sentence(&finding);
        assert!(text.contains("RSS is mostly between 11"), "{text}");
        assert!(!text.contains("stays near"), "{text}");
    }

    /// Verdict and sentence for a process with this RSS in MB by round.
    fn explanation(rss: impl Fn(f64) -> f64) -> (Verdict, String) {
        explanation_of(20, rss)
    }

    fn explanation_of(rounds: usize, rss: impl Fn(f64) -> f64) -> (Verdict, String) {
        let marker = |round| sample(round, sizes(&[(Size::Rss, rss(round as f64))]));
        let finding = finding_of((0..rounds).map(marker));
        (finding.verdict, sentence(&finding))
    }

    #[test]
    fn rounds_that_swing_before_the_growth_are_not_called_flat() {
        let (verdict, text) = explanation_of(60, |round| {
            400.0 + 15.0 * (round % 3.0) + 10.0 * f64::max(0.0, round - 19.0)
        });
        assert_eq!(verdict, Verdict::Growth, "{text}");
        assert!(text.contains("(without the first "), "{text}");
    }

    /// Verdict and sentence for live memory in MB and a release before the marker, by round.
    fn explanation_with_releases(
        rounds: usize,
        live_and_released: impl Fn(usize) -> (f64, f64),
    ) -> (Verdict, String) {
        let marker = |round: usize| {
            let (live, released) = live_and_released(round);
            Marker {
                gc_released_bytes: bytes(released),
                gc_live_after_bytes: bytes(live).filter(|_| released > 0.0),
                gc_ms: Some(10),
                ..sample(
                    round,
                    sizes(&[(Size::Live, live), (Size::Rss, live + 100.0)]),
                )
            }
        };
        let finding = finding_of((0..rounds).map(marker));
        (finding.verdict, sentence(&finding))
    }

    /// 250 MB live, and garbage of `height` MB per round that every `period`-th round is collected.
    fn sawtooth(period: usize, height: f64) -> impl Fn(usize) -> (f64, f64) {
        move |round| {
            let live = 250.0 + (round % period) as f64 * height;
            let is_collected = round > 0 && round.is_multiple_of(period);
            let released = if is_collected { period - 1 } else { 0 };
            (live, released as f64 * height)
        }
    }

    #[test]
    fn a_certain_small_slope_has_its_sign_and_the_growth_that_would_matter() {
        for (slope, trend) in [(0.28, "trend of +0.28"), (-0.28, "trend of -0.28")] {
            let (verdict, text) = explanation(|round| 220.0 + slope * round);
            assert_eq!(verdict, Verdict::Flat);
            let is_told = text.contains(trend) && text.contains("MB/round or more would matter.");
            assert!(is_told && !text.contains("stays"), "{text}");
        }
        let (_, text) = explanation(|_| 220.0);
        let start = "RSS is about 220.0 MB over 20 rounds at stage send. ";
        assert!(text.starts_with(start), "{text}");
    }

    #[test]
    fn a_certain_slope_of_uncertain_importance_is_unclear_and_not_a_level() {
        let noise = |round: f64| 8.0 * ((round * 2.39).sin() + (round * 1.13).cos());
        let (verdict, text) = explanation(|round| 220.0 + 0.95 * round + noise(round));
        assert_eq!(verdict, Verdict::Unclear, "{text}");
        let start = "RSS changes by +0.9";
        assert!(text.starts_with(start), "{text}");
    }

    #[test]
    fn a_flat_process_says_which_growth_is_ruled_out() {
        let (verdict, text) = explanation(|round| 300.0 + 4.0 * (round * 2.39).sin());
        assert_eq!(verdict, Verdict::Flat, "{text}");
        assert!(text.contains(" (95 % interval: -0."), "{text}");
        assert!(text.contains(" MB) excludes growth above 0."), "{text}");
    }

    #[test]
    fn a_level_that_alternates_is_said_to_alternate_and_has_no_steps() {
        for rounds in [1, 3] {
            let is_high = |round: f64| (round / f64::from(rounds)) as u32 % 2 == 1;
            let rss = |round| if is_high(round) { 400.0 } else { 300.0 };
            let (verdict, text) = explanation(rss);
            assert_eq!(verdict, Verdict::Flat, "{text}");
            let start = "RSS alternates between 300.0 and 400.0 MB over 20 rounds";
            assert!(text.starts_with(start), "{text}");
        }
    }

    #[test]
    fn a_process_that_grew_only_at_first_names_the_rise_and_its_stage() {
        let (verdict, text) = explanation(|round| 200.0 + 40.0 * f64::min(round, 5.0));
        assert_eq!(verdict, Verdict::Flat, "{text}");
        let start =
            "RSS rose by 200.0 MB in the first 5 rounds. Since then RSS is about 400.0 MB over ";
        assert!(text.starts_with(start), "{text}");
        assert!(text.contains(" at stage send. "), "{text}");
    }

    #[test]
    fn a_rise_in_the_first_round_has_no_number() {
        let (_, text) = explanation(|round| if round < 1.0 { 200.0 } else { 400.0 });
        let start =
            "RSS rose by 200.0 MB in the first round. Since then RSS is about 400.0 MB over \
                     the last 19 rounds (without the first) at stage send.";
        assert!(text.starts_with(start), "{text}");
    }

    #[test]
    fn a_step_is_named_and_the_rest_is_flat() {
        let (verdict, text) = explanation(|round| if round < 9.0 { 300.0 } else { 420.0 });
        assert_eq!(verdict, Verdict::Flat, "{text}");
        let start = "1 step: +120.0 MB at round 9. Apart from that, RSS changes by 0 KB/round (95 % interval: ";
        assert!(text.starts_with(start), "{text}");
    }

    #[test]
    fn steps_behind_a_long_rise_leave_the_verdict_open() {
        let rises = |rounds: f64, steps: &[f64]| {
            explanation_of(80, |round| {
                let steps = steps.iter().filter(|step| round >= **step).count();
                200.0 + 20.0 * round.min(rounds) + 50.0 * steps as f64 + (round * 2.39).sin()
            })
        };
        for (rounds, steps, expected, named) in [
            (6.0, &[55.0, 70.0][..], Verdict::Flat, "2 steps: +"),
            (40.0, &[55.0, 70.0], Verdict::Unclear, "2 steps: +"),
            (45.0, &[65.0], Verdict::Unclear, "1 step: +"),
        ] {
            let (verdict, text) = rises(rounds, steps);
            assert_eq!(verdict, expected, "{text}");
            let named = format!(" in the first {rounds} rounds. {named}");
            assert!(
                text.starts_with("RSS rose by ") && text.contains(&named),
                "{text}"
            );
        }
    }

    #[test]
    fn a_warm_up_names_the_memory_that_rises() {
        let marker = |round: usize| {
            let shared = 20.0 + 12.0 * round as f64;
            let kinds = [
                (Size::Rss, 33.0 + shared),
                (Size::Shmem, shared),
                (Size::Live, 10.0),
                (Size::File, 8.0),
                (Size::Swap, 0.0),
            ];
            sample(round, sizes(&kinds))
        };
        let finding = finding_of((0..6).map(marker));
        let text = sentence(&finding);
        assert_eq!(finding.verdict, Verdict::WarmingUp, "{text}");
        assert!(
            text.contains("; 100 % of the rise is shared memory. These are"),
            "{text}"
        );
    }

    #[test]
    fn cyclic_garbage_is_explained_by_the_collections() {
        let (verdict, text) = explanation_with_releases(24, sawtooth(8, 64.0));
        assert_eq!(verdict, Verdict::CyclicGarbage, "{text}");
        let part = "2 collections released 896.0 MB";
        assert!(text.contains(part), "{text}");
    }

    #[test]
    fn garbage_of_a_flat_process_is_mentioned_if_it_is_large() {
        let released = |round: usize| if round.is_multiple_of(3) { 64.0 } else { 0.0 };
        let (verdict, text) = explanation_with_releases(30, |round| (250.0, released(round)));
        assert_eq!(verdict, Verdict::Flat, "{text}");
        let part = "10 collections released 640.0 MB";
        assert!(text.contains(part), "{text}");
        let (_, text) = explanation_with_releases(30, |_| (250.0, f64::NAN));
        assert!(!text.contains("garbage"), "{text}");
    }

    #[test]
    fn a_level_after_collections_is_explained_by_them() {
        for rounds in [16, 20, 24, 50] {
            let (verdict, text) = explanation_with_releases(rounds, sawtooth(7, 5.0));
            assert_eq!(verdict, Verdict::Flat, "{rounds}: {text}");
            assert!(text.contains("garbage"), "{rounds}: {text}");
        }
    }
}
