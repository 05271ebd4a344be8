//! The evidence for the verdict: one sentence for each.

use super::phrases::{
    between, counted, growth_clause, quantity_name, rate, rate_per, rounds_phrase, settled_rounds,
    shares, steps,
};
use super::remedy::{is_mostly_shared, Pool};
use crate::report::analyse::stats::{
    median, Slope, MATERIAL_BYTES, MIN_ROUNDS, MIN_SETTLED_ROUNDS,
};
use crate::report::analyse::{swing, Finding, MemoryKind, Quantity, Verdict};
use crate::report::model::{Collection, Process, Size};
use crate::report::units::{printable, rounds_to_zero, size, Amount, MB};

pub fn sentence(process: &Process, finding: &Finding) -> String {
    let (quantity, over) = (quantity_name(finding), rounds_phrase(finding));
    let (unit, grows) = (finding.rounds_unit(), growth_clause(finding));
    let shares = shares(process, finding, "growth");
    match finding.verdict {
        Verdict::LiveGrowth => live_growth(process, finding),
        Verdict::Retention => {
            let kept = size(finding.typical.kept_free());
            format!(
                "{grows}; {shares}. The allocator keeps {kept} of free memory that the program does not use."
            )
        }
        Verdict::Growth => {
            format!(
                "{grows}. These markers contain only RSS, so they do not show which memory grows."
            )
        }
        Verdict::Swap => swap(process, finding),
        Verdict::FileBacked if is_mostly_shared(finding) => {
            format!(
                "{grows}; {shares}. The kernel cannot reclaim shared memory while it is in use."
            )
        }
        Verdict::FileBacked => {
            format!("{grows}; {shares}. The kernel reclaims file pages when it needs memory.")
        }
        Verdict::CyclicGarbage => cyclic_garbage(process, finding),
        Verdict::Unclear if slope_has_certain_sign(finding) => {
            let rate = rate(finding, Amount::Change);
            format!(
                "{quantity} changes by {rate} {over}. It is not certain yet whether this matters: record more {unit}s."
            )
        }
        Verdict::Unclear => {
            let (level, rate) = (level_clause(finding), rate(finding, Amount::Change));
            format!(
                "{level} {over}. The trend of {rate} is too uncertain to exclude growth: record more {unit}s."
            )
        }
        Verdict::WarmingUp => {
            let (rate, kinds) = (rate(finding, Amount::Size), kinds(process, finding));
            match settled_rounds(finding) < MIN_SETTLED_ROUNDS as u64 {
                true => format!(
                    "{quantity} rises by {rate} {over}{kinds}. These are too few {unit}s to tell a warm-up from growth."
                ),
                false => format!(
                    "{quantity} rises more and more slowly{kinds}. The last rate is {rate}, {over}."
                ),
            }
        }
        Verdict::Falling => format!("{quantity} {} {over}.", moves(finding)),
        Verdict::Flat => flat(finding, process) + &cached(finding) + &collected_in_time(process),
        Verdict::NotEnoughRounds => format!(
            "{}. A verdict needs at least {MIN_ROUNDS}. To call a rise growth, the report needs \
             {MIN_SETTLED_ROUNDS} after the warm-up.",
            counted(finding.rounds, finding)
        ),
    }
}

fn live_growth(process: &Process, finding: &Finding) -> String {
    let (grows, unit) = (growth_clause(finding), finding.unit);
    match finding.quantity {
        Quantity::Live => format!(
            "{grows}. RSS is mostly {}; whether it grows, too, is not certain yet.",
            between(finding.level.range)
        ),
        Quantity::AfterCollections => format!(
            "{grows}. Apart from garbage, which is collected, the program holds more memory each \
             {unit}."
        ),
        Quantity::Footprint | Quantity::WithoutCached | Quantity::Swap => {
            let largest = finding.causes.first().map(|cause| cause.kind);
            let details = match Pool::largest(finding) {
                Some(pool) => format!(" ({})", pool.name),
                None if largest == Some(MemoryKind::OutsideMalloc) => {
                    " (small Python objects, stacks, mapped buffers)".to_owned()
                }
                None => String::new(),
            };
            let shares = shares(process, finding, "growth");
            format!("{grows}; {shares}{details}. The program holds more memory each {unit}.")
        }
    }
}

fn swap(process: &Process, finding: &Finding) -> String {
    let limit = match process.cgroup_limit {
        limit if limit.is_nan() => String::new(),
        limit => format!(" (limit {})", size(limit)),
    };
    let footprint = match finding.quantity {
        Quantity::Swap => ", but the sum of RSS and swap does not",
        Quantity::Footprint
        | Quantity::WithoutCached
        | Quantity::Live
        | Quantity::AfterCollections => "",
    };
    let (grows, rss) = (growth_clause(finding), size(finding.typical[Size::Rss]));
    format!("{grows}{footprint}. The kernel moves pages to swap; RSS is {rss}{limit}.")
}

fn cyclic_garbage(process: &Process, finding: &Finding) -> String {
    let (stage, rounds, unit) = (&finding.stage, finding.rounds, finding.unit);
    let series = process.series(stage);
    let height = series.map_or(0.0, |series| swing(series, finding));
    let material = process.collections.releasing_at_least(MATERIAL_BYTES);
    let released = |collection: &Collection| collection.released;
    let typical = median(&material.iter().map(released).collect::<Vec<_>>());
    let interval = match rounds / (material.len() as u64).max(1) {
        0 | 1 => format!("about one per {unit}"),
        n => format!("about one per {n} {unit}s"),
    };
    let all = &process.collections;
    format!(
        "live memory rises and falls by {} at stage {}, because full garbage collections free \
         objects that refer to each other: {} collections, {interval}, released {} (median {}) in \
         {:.1} s. The garbage is collected in time: memory after the collections does not grow.",
        size(height),
        printable(stage),
        all.count,
        size(all.released),
        size(typical),
        all.ms / 1000.0,
    )
}

/// `; 100 % of the rise is shared memory`; empty if the markers contain only RSS.
fn kinds(process: &Process, finding: &Finding) -> String {
    match finding.causes.first() {
        Some(cause) if cause.kind != MemoryKind::Unknown => {
            format!("; {}", shares(process, finding, "rise"))
        }
        _ => String::new(),
    }
}

fn flat(finding: &Finding, process: &Process) -> String {
    let (quantity, over) = (quantity_name(finding), rounds_phrase(finding));
    let rate = rate(finding, Amount::Change);
    let Slope { per_x, high, .. } = finding.trend.slope;
    let threshold = finding.trend.threshold;
    if let Some(steps) = steps(process, finding) {
        let apart = if finding.steps.len() == 1 {
            "step"
        } else {
            "steps"
        };
        return format!("{steps}. Apart from the {apart}, {quantity} changes by {rate} {over}.");
    }
    let unit = finding.unit;
    if slope_has_certain_sign(finding) && per_x.abs() <= threshold {
        return format!(
            "{quantity} (median {}) {} {over}. That is too little to matter: growth of {}/{unit} or \
             more would.",
            size(finding.level.median),
            moves(finding),
            size(threshold),
        );
    }
    let level = level_clause(finding);
    let trend = match rounds_to_zero(high.max(0.0)) {
        true => format!("The trend of {rate} excludes growth"),
        false => format!(
            "The trend of {rate} excludes growth above {}/{unit}",
            size(high)
        ),
    };
    match finding.trend.has_risen_before() {
        true => format!(
            "{quantity} rose by {} in the first {} at stage {}. Since then {level}, for {}. {trend}.",
            size(finding.trend.rise_before),
            counted(finding.trend.warm_up as u64, finding),
            printable(&finding.stage),
            counted(settled_rounds(finding), finding),
        ),
        false => format!("{level} {over}. {trend}."),
    }
}

/// ` Cached pages alternate between 0 and 8.00 MB; they are returned at need.`
fn cached(finding: &Finding) -> String {
    let (low, high) = finding.cached.range;
    if finding.quantity != Quantity::WithoutCached || high - low < MB {
        return String::new();
    }
    let verb = match finding.cached.alternates {
        true => "alternate",
        false => "are mostly",
    };
    format!(
        " Cached pages {verb} {}; they are returned at need.",
        between((low, high))
    )
}

/// One more sentence about a flat process whose collections released at least 32 MB.
fn collected_in_time(process: &Process) -> String {
    const MIN_RELEASED: f64 = 32.0 * MB;
    let all = &process.collections;
    if all.released < MIN_RELEASED {
        return String::new();
    }
    let (count, released) = (all.count, size(all.released));
    format!(" Cyclic garbage is collected in time: {count} full collections released {released}.")
}

/// `RSS stays at 512.3 MB`, or `RSS is mostly between 300.6 and 520.0 MB`
fn level_clause(finding: &Finding) -> String {
    /// A wider range is printed instead of the median.
    const MIN_RANGE_SHARE: f64 = 0.2;
    let (quantity, level) = (quantity_name(finding), &finding.level);
    let (low, high) = level.range;
    match () {
        () if high - low <= MIN_RANGE_SHARE * level.median => {
            format!("{quantity} stays at {}", size(level.median))
        }
        () if level.alternates => format!("{quantity} alternates {}", between(level.range)),
        () => format!("{quantity} is mostly {}", between(level.range)),
    }
}

/// `rises by 0.28 MB/round (95 % interval: ...)`, or `falls by ...`
fn moves(finding: &Finding) -> String {
    let slope = finding.trend.slope;
    let (verb, slope) = match slope.per_x > 0.0 {
        true => ("rises", slope),
        false => ("falls", slope.negated()),
    };
    format!(
        "{verb} by {}",
        rate_per(&slope, finding.unit.name(), Amount::Size)
    )
}

/// True if the whole interval, as printed, lies on one side of zero.
fn slope_has_certain_sign(finding: &Finding) -> bool {
    let Slope { low, high, .. } = finding.trend.slope;
    low > 0.0 && !rounds_to_zero(low) || high < 0.0 && !rounds_to_zero(high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::{if_known, process_and_finding, sample, sizes};
    use crate::report::explain::remedy::of_verdict;
    use crate::report::model::site_history_tests::growing;
    use crate::report::model::Sample;

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
                sizes[pool] = (50.0 + share * grown) * MB;
            }
            sample(round, sizes)
        };
        let (process, finding) = process_and_finding((0..24).map(marker));
        (
            sentence(&process, &finding),
            of_verdict(&process, &finding).unwrap_or_default(),
        )
    }

    #[test]
    fn a_pool_with_most_of_the_growth_is_named_with_its_remedy() {
        for (size, name, advice) in [
            (
                Size::Pymalloc,
                "small Python objects).",
                "PYTHONMALLOC=malloc",
            ),
            (Size::Arrow, "Arrow's pool).", "ARROW_DEFAULT_MEMORY_POOL"),
        ] {
            let (sentence, remedy) = explanation_with_pool(Some(size), 0.8);
            assert!(sentence.contains(name), "{sentence}");
            assert!(remedy.contains(advice), "{remedy}");
        }
    }

    #[test]
    fn a_pool_with_a_small_part_of_the_growth_is_not_named() {
        for (pool, share) in [(None, 0.0), (Some(Size::Arrow), 0.3)] {
            let (sentence, remedy) = explanation_with_pool(pool, share);
            let all = "small Python objects, stacks, mapped buffers";
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
                sizes[Size::Pinned] = (5.0 + pinned_share * grown) * MB;
                sample(round, sizes)
            };
            let (process, finding) = process_and_finding((0..24).map(marker));
            (
                sentence(&process, &finding),
                of_verdict(&process, &finding).unwrap_or_default(),
            )
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
            let (mut process, finding) = process_and_finding((0..24).map(marker));
            process.allocation_sites = growing(&(0..24).map(held).collect::<Vec<_>>());
            of_verdict(&process, &finding).unwrap_or_default()
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
            Sample {
                alloc: Some(alloc.into()),
                settings: Some(settings.into()),
                round: Some(round as i64),
                stage: stage.into(),
                ..sample(seq, sizes(&known))
            }
        };
        let (process, finding) = process_and_finding((0..48).map(marker));
        assert_eq!(finding.verdict, Verdict::Retention);
        of_verdict(&process, &finding).unwrap_or_default()
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
        let (process, finding) = process_and_finding((0..24).map(marker));
        assert_eq!(finding.quantity, Quantity::Live);
        let text = sentence(&process, &finding);
        assert!(text.contains("RSS is mostly between 11"), "{text}");
        assert!(!text.contains("stays near"), "{text}");
    }

    /// Verdict and sentence for a process with this RSS in MB by round.
    fn explanation(rss: impl Fn(f64) -> f64) -> (Verdict, String) {
        let marker = |round| sample(round, sizes(&[(Size::Rss, rss(round as f64))]));
        let (process, finding) = process_and_finding((0..20).map(marker));
        (finding.verdict, sentence(&process, &finding))
    }

    /// Verdict and sentence for live memory in MB and a release before the marker, by round.
    fn explanation_with_releases(
        rounds: usize,
        live_and_released: impl Fn(usize) -> (f64, f64),
    ) -> (Verdict, String) {
        let marker = |round: usize| {
            let (live, released) = live_and_released(round);
            Sample {
                gc_released: if_known(released * MB),
                gc_live_after: (released > 0.0).then_some(live * MB),
                gc_ms: Some(10.0),
                ..sample(
                    round,
                    sizes(&[(Size::Live, live), (Size::Rss, live + 100.0)]),
                )
            }
        };
        let (process, finding) = process_and_finding((0..rounds).map(marker));
        (finding.verdict, sentence(&process, &finding))
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
    fn a_certain_small_slope_is_a_rise_or_fall_and_not_a_level() {
        for (slope, moves) in [(0.28, "rises by 0.28"), (-0.28, "falls by 0.28")] {
            let (verdict, text) = explanation(|round| 220.0 + slope * round);
            assert_eq!(verdict, Verdict::Flat);
            assert!(text.contains(moves) && !text.contains("stays"), "{text}");
        }
        let (_, text) = explanation(|_| 220.0);
        let start = "RSS stays at 220.0 MB over 20 rounds at stage send. ";
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
        assert!(text.contains(" excludes growth above 0."), "{text}");
        assert!(text.ends_with("MB/round."), "{text}");
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
    fn a_process_that_grew_only_at_first_names_its_stage() {
        let (verdict, text) = explanation(|round| 200.0 + 40.0 * f64::min(round, 5.0));
        assert_eq!(verdict, Verdict::Flat, "{text}");
        let stage = " rounds at stage send. Since then RSS stays at 400.0 MB, for ";
        assert!(text.contains(stage), "{text}");
    }

    #[test]
    fn a_step_is_named_and_the_rest_is_flat() {
        let (verdict, text) = explanation(|round| if round < 9.0 { 300.0 } else { 420.0 });
        assert_eq!(verdict, Verdict::Flat, "{text}");
        let start = "one step of +120.0 MB at round 9, flat before and after. Apart from the step, RSS changes by 0 KB";
        assert!(text.starts_with(start), "{text}");
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
        let (process, finding) = process_and_finding((0..6).map(marker));
        let text = sentence(&process, &finding);
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
        let part = "2 collections, about one per 12 rounds, released 896.0 MB";
        assert!(text.contains(part), "{text}");
    }

    #[test]
    fn garbage_of_a_flat_process_is_mentioned_if_it_is_large() {
        let released = |round: usize| if round.is_multiple_of(3) { 64.0 } else { 0.0 };
        let (verdict, text) = explanation_with_releases(30, |round| (250.0, released(round)));
        assert_eq!(verdict, Verdict::Flat, "{text}");
        let part = "10 full collections released 640.0 MB";
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
