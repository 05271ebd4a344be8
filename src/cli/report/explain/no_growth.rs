//! Sentences for the verdicts without growth: flat, unclear, warming up, too few rounds, and cyclic
//! garbage.

use super::phrases::{
    fall, quantity_name, rate, rise, rounds_phrase, settled_rounds, shares, steps,
};
use crate::report::analyse::stats::{
    median, Slope, MATERIAL_BYTES, MIN_ROUNDS, MIN_SETTLED_ROUNDS,
};
use crate::report::analyse::{swing, Basis, Finding, MemoryKind, Quantity};
use crate::report::model::{Collection, Process};
use crate::report::units::{plural, printable, range, rounds_to_zero, size, Amount, MB};

/// A range wider than this share of the typical size is printed instead of the typical size.
const MIN_RANGE_SHARE: f64 = 0.2;

pub fn not_enough_rounds(finding: &Finding) -> String {
    let seen = plural(finding.rounds, finding.rounds_unit().name());
    format!(
        "{seen}. A verdict needs at least {MIN_ROUNDS}. To call a rise growth, the report needs \
         {MIN_SETTLED_ROUNDS} after the warm-up."
    )
}

pub fn warming_up(process: &Process, finding: &Finding) -> String {
    let (quantity, over, unit) = (
        quantity_name(finding),
        rounds_phrase(finding),
        finding.rounds_unit(),
    );
    let (rise, kinds) = (rise(finding), kinds(process, finding));
    match settled_rounds(finding) < MIN_SETTLED_ROUNDS as u64 {
        true => format!(
            "{quantity} rises by {rise} {over}{kinds}. These are too few {unit}s to tell a warm-up from growth."
        ),
        false => format!("{quantity} rises more and more slowly{kinds}. The last rate is {rise}, {over}."),
    }
}

pub fn unclear(finding: &Finding) -> String {
    let (over, rate, unit) = (rounds_phrase(finding), rate(finding), finding.rounds_unit());
    match slope_has_certain_sign(finding) {
        true => format!(
            "{} changes by {rate} {over}. It is not certain yet whether this matters: record more {unit}s.",
            quantity_name(finding)
        ),
        false => format!(
            "{} {over}. The trend of {rate} is too uncertain to exclude growth: record more {unit}s.",
            level_clause(finding)
        ),
    }
}

pub fn falling(finding: &Finding) -> String {
    let (quantity, over) = (quantity_name(finding), rounds_phrase(finding));
    format!("{quantity} falls by {} {over}.", fall(finding))
}

pub fn flat(process: &Process, finding: &Finding) -> String {
    level(process, finding) + &cached(finding) + &collected_in_time(process)
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
    let between = range(low, "and", high, Amount::Size);
    format!(" Cached pages {verb} between {between}; they are returned at need.")
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

fn level(process: &Process, finding: &Finding) -> String {
    let (quantity, over, rate) = (
        quantity_name(finding),
        rounds_phrase(finding),
        rate(finding),
    );
    if finding.basis == Basis::LevelAfterCollections {
        let (low, high) = finding.level.range;
        return format!(
            "{quantity} is mostly between {} {over}. Live memory after full garbage collections \
             does not rise.",
            range(low, "and", high, Amount::Size)
        );
    }
    let Slope { per_x, high, .. } = finding.trend.slope;
    let unit = finding.unit;
    if let Some(steps) = steps(process, finding) {
        let recent = finding.steps.last().map_or(0, |step| step.samples_after);
        let recent = match recent < MIN_ROUNDS {
            true => format!(
                " Only {} followed the last step.",
                plural(recent as i64, finding.rounds_unit().name())
            ),
            false => String::new(),
        };
        let apart = match finding.steps.len() {
            1 => "the step",
            _ => "the steps",
        };
        return format!(
            "{steps}. Apart from {apart}, {quantity} changes by {rate} {over}.{recent}"
        );
    }
    if slope_has_certain_sign(finding) && per_x.abs() <= finding.trend.threshold {
        return format!(
            "{quantity} (median {}) {} {over}. That is too little to matter: growth of {}/{unit} or \
             more would.",
            size(finding.level.median),
            match per_x > 0.0 {
                true => format!("rises by {}", rise(finding)),
                false => format!("falls by {}", fall(finding)),
            },
            size(finding.trend.threshold),
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
            plural(finding.trend.warm_up as i64, finding.rounds_unit().name()),
            printable(&finding.stage),
            plural(settled_rounds(finding), finding.rounds_unit().name()),
        ),
        false => format!("{level} {over}. {trend}."),
    }
}

/// `RSS stays at 512.3 MB`, or `RSS is mostly between 300.6 and 520.0 MB`
fn level_clause(finding: &Finding) -> String {
    let (quantity, level) = (quantity_name(finding), &finding.level);
    let (low, high) = level.range;
    if high - low > MIN_RANGE_SHARE * level.median {
        let verb = match level.alternates {
            true => "alternates",
            false => "is mostly",
        };
        format!(
            "{quantity} {verb} between {}",
            range(low, "and", high, Amount::Size)
        )
    } else {
        format!("{quantity} stays at {}", size(level.median))
    }
}

/// True if the whole interval, as printed, lies on one side of zero.
fn slope_has_certain_sign(finding: &Finding) -> bool {
    let Slope { low, high, .. } = finding.trend.slope;
    low > 0.0 && !rounds_to_zero(low) || high < 0.0 && !rounds_to_zero(high)
}

pub fn cyclic_garbage(process: &Process, finding: &Finding) -> String {
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

/// Garbage that is collected in time needs no change, unless its peaks come near the limit.
pub fn cyclic_garbage_remedy(process: &Process) -> Option<&'static str> {
    const NEAR_LIMIT: f64 = 0.8;
    let is_near = process.peak_rss > NEAR_LIMIT * process.cgroup_limit;
    is_near.then_some(match process.records_sites() {
        true => {
            "the peaks come near the memory limit: break the cycle of references in the program"
        }
        false => {
            "the peaks come near the memory limit: break the cycle of references in the program; \
             `flarena run --sites` names the line that allocates"
        }
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::{if_known, process_and_finding, sample, sizes};
    use crate::report::analyse::Verdict;
    use crate::report::explain::sentence;
    use crate::report::model::{Sample, Size};

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
