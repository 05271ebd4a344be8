//! Sentences and remedies for the kinds of growth: live growth, retention, swap, file-backed memory,
//! and growth of an unknown kind.

use flarena_shared::stages::Stage;

use super::phrases::{growth_clause, shares};
use crate::report::analyse::{Finding, MemoryKind, Quantity, Verdict};
use crate::report::model::{Process, Size};
use crate::report::sites;
use crate::report::units::{range, size, Amount};
use crate::who::phrases::unrecorded_small_blocks;

/// A cause with at least this share of the growth gets a remedy, also if it did not decide the
/// verdict.
const MIN_SHARE_FOR_REMEDY: f64 = 0.25;

pub fn retention(process: &Process, finding: &Finding) -> String {
    format!(
        "{}; {}. The allocator keeps {} of free memory that the program does not use.",
        growth_clause(finding),
        shares(process, finding, "growth"),
        size(finding.typical.kept_free()),
    )
}

pub fn file_backed(process: &Process, finding: &Finding) -> String {
    let reclaim = match is_mostly_shared(finding) {
        true => "The kernel cannot reclaim shared memory while it is in use.",
        false => "The kernel reclaims file pages when it needs memory.",
    };
    let shares = shares(process, finding, "growth");
    format!("{}; {shares}. {reclaim}", growth_clause(finding))
}

pub fn of_unknown_kind(finding: &Finding) -> String {
    let grows = growth_clause(finding);
    format!("{grows}. These markers contain only RSS, so they do not show which memory grows.")
}

pub fn live(process: &Process, finding: &Finding) -> String {
    let (grows, unit) = (growth_clause(finding), finding.unit);
    match finding.quantity {
        Quantity::Live if is_level(finding) => format!(
            "{grows}. RSS stays near {}, because the new blocks still fit into free memory that the \
             allocator kept.",
            size(finding.typical.footprint())
        ),
        Quantity::Live => format!(
            "{grows}. RSS is mostly between {}; whether it grows, too, is not certain yet.",
            range(finding.level.range.0, "and", finding.level.range.1, Amount::Size)
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
            let small = small_blocks(process, finding);
            format!("{grows}; {shares}{details}. The program holds more memory each {unit}.{small}")
        }
    }
}

/// True if most values of RSS and swap are near the typical one.
fn is_level(finding: &Finding) -> bool {
    const MAX_RANGE_SHARE: f64 = 0.1;
    let (low, high) = finding.level.range;
    high - low <= MAX_RANGE_SHARE * finding.typical.footprint()
}

/// ` 77.2 MB are in blocks below ...`, if these hold most of the growth.
fn small_blocks(process: &Process, finding: &Finding) -> String {
    match sites::small_blocks(process) {
        Some(small) if small.hold_growth && is_served_by_malloc(finding) => {
            let text = unrecorded_small_blocks(small.bytes as u64);
            format!(" {text}.")
        }
        _ => String::new(),
    }
}

fn is_served_by_malloc(finding: &Finding) -> bool {
    !matches!(
        largest_live(finding),
        Some(MemoryKind::OutsideMalloc | MemoryKind::Pinned)
    )
}

/// The largest kind of the memory that the program holds.
fn largest_live(finding: &Finding) -> Option<MemoryKind> {
    let mut kinds = finding.causes.iter();
    let cause = kinds.find(|cause| cause.verdict() == Verdict::LiveGrowth)?;
    Some(cause.kind)
}

pub fn swap(process: &Process, finding: &Finding) -> String {
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

fn is_mostly_shared(finding: &Finding) -> bool {
    finding.parts.shmem > finding.parts.file
}

/// The remedy of the verdict, and those of all large causes.
pub fn remedy(process: &Process, finding: &Finding) -> String {
    let causes = finding.causes.iter();
    let large = causes.filter(|cause| cause.share >= MIN_SHARE_FOR_REMEDY);
    let is_pinned = large.clone().any(|cause| cause.kind == MemoryKind::Pinned);
    let mut verdicts = vec![finding.verdict];
    for verdict in large.map(|cause| cause.verdict()) {
        if !verdicts.contains(&verdict) {
            verdicts.push(verdict);
        }
    }
    let remedies = verdicts.into_iter().filter_map(|verdict| Some(match verdict {
        Verdict::LiveGrowth => live_growth_remedy(process, finding).to_owned(),
        Verdict::Retention => retention_remedy(process, finding),
        Verdict::Swap => {
            "give the job more memory, or run fewer jobs beside it: a job whose pages are in \
             swap is slow"
                .to_owned()
        }
        Verdict::FileBacked if is_mostly_shared(finding) => {
            "look in /dev/shm for shared tensors that no process removes; with a GPU it may also be \
             pinned memory, which `flarena.mark()` counts"
                .to_owned()
        }
        Verdict::FileBacked => {
            "no setting changes this; if the memory limit is near, map less of the data set or model"
                .to_owned()
        }
        Verdict::Growth => "start the job with `flarena run --profile`: its markers show live and free memory \
              separately"
            .to_owned(),
        Verdict::CyclicGarbage
        | Verdict::Unclear
        | Verdict::WarmingUp
        | Verdict::Falling
        | Verdict::Flat
        | Verdict::NotEnoughRounds => return None,
    }));
    let mut remedies: Vec<String> = remedies.collect();
    if is_pinned && largest_live(finding) != Some(MemoryKind::Pinned) {
        remedies.push(PINNED_REMEDY.to_owned());
    }
    remedies.join("; ")
}

const PINNED_REMEDY: &str =
    "call `flarena.trim()` at the end of each round, which empties PyTorch's \
    cache of pinned memory; if growth continues, look for pinned tensors that the program keeps";

fn live_growth_remedy(process: &Process, finding: &Finding) -> &'static str {
    let holds_small_blocks = || {
        let small = sites::small_blocks(process);
        small.is_some_and(|small| small.hold_growth)
    };
    match Pool::largest(finding) {
        Some(pool) => pool.remedy,
        None if largest_live(finding) == Some(MemoryKind::Pinned) => PINNED_REMEDY,
        None if !is_served_by_malloc(finding) => {
            "run `flarena doctor --all PID` while the process runs; it names the memory outside malloc"
        }
        None if process.allocation_sites.rounds().is_empty() && process.records_sites() => {
            "look for a list, cache or history that gains entries and never drops them"
        }
        None if process.allocation_sites.rounds().is_empty() => {
            "look for a list, cache or history that gains entries and never drops them; \
             `flarena run --sites` names the line"
        }
        None if holds_small_blocks() => {
            "look for a list, cache or history of small objects that never drops entries; \
             without `FLARENA_SITES_SAMPLE=off`, `flarena run --sites` names the line"
        }
        None if sites::grows_in_onnx_runtime(&process.allocation_sites) => {
            "ONNX Runtime's CPU arena keeps the memory of the largest inputs: set \
             `enable_cpu_mem_arena = False` in the SessionOptions of each session"
        }
        None if sites::replace_older_blocks(&process.allocation_sites) => {
            "look for a list, cache or history that never drops entries. Its line is not known yet, because sites \
             still replace blocks from before the recording began; `flarena report` names it some rounds later"
        }
        None => {
            "look at the lines below: they probably fill a list, cache or history that never drops \
             entries"
        }
    }
}

/// Settings that are not in force yet.
fn retention_remedy(process: &Process, finding: &Finding) -> String {
    /// The longest decay that needs no remedy.
    const SHORT_DECAY_MS: f64 = 100.0;
    let is_jemalloc = process.alloc.as_deref() == Some("jemalloc");
    let decay = process
        .setting("FLARENA_DECAY_MS")
        .and_then(|ms| ms.parse().ok());
    let has_short_decay = decay.is_some_and(|ms: f64| ms <= SHORT_DECAY_MS);
    // The library sets 2 or 4 arenas; markers name only another number.
    let arenas = process
        .setting("MALLOC_ARENA_MAX")
        .and_then(|n| n.parse().ok());
    let has_many_arenas = arenas.is_some_and(|n: f64| n > 4.0);
    let setting = match () {
        () if 2.0 * finding.parts.recycled > finding.parts.kept_free => {
            (!has_short_decay).then_some("`export FLARENA_DECAY_MS=100` before the start")
        }
        () if is_jemalloc => (process.setting("MALLOC_CONF").is_none()).then_some(
            "`export MALLOC_CONF=dirty_decay_ms:1000,muzzy_decay_ms:0` before the start",
        ),
        () if has_many_arenas => Some(
            "`export NVFLARE_ENABLE_JEMALLOC_PRELOAD=true` before the start, or \
             `export MALLOC_ARENA_MAX=2` (client) or `4` (server)",
        ),
        () => Some("`export NVFLARE_ENABLE_JEMALLOC_PRELOAD=true` before the start"),
    };
    let trim = "call `flarena.trim()` at the end of each round";
    let trims = process.series(Stage::AfterTrim.name()).is_some();
    match (setting, trims) {
        (Some(setting), true) => setting.to_owned(),
        (Some(setting), false) => format!("{setting}, or {trim}"),
        (None, false) => trim.to_owned(),
        (None, true) => "the settings that help are in force; the free memory is between live \
                         blocks and returns when the program frees these"
            .to_owned(),
    }
}

/// An allocator beside malloc that reports its size.
struct Pool {
    /// Completes "memory outside malloc 80 % (...)".
    name: &'static str,
    remedy: &'static str,
}

const PYMALLOC: Pool = Pool {
    name: "small Python objects",
    remedy: "look for a list, cache or history of small Python objects that never drops entries; \
             `flarena run --sites` names lines for objects up to 512 bytes only with \
             `PYTHONMALLOC=malloc`",
};
const ARROW: Pool = Pool {
    name: "Apache Arrow's pool",
    remedy: "look for Arrow tables or batches that the program keeps; with \
             `ARROW_DEFAULT_MEMORY_POOL=system`, the default of `flarena run`, \
             `flarena run --sites` names the line",
};

impl Pool {
    /// The pool with at least half of the growth outside malloc. `None` if another kind of memory
    /// grows more.
    fn largest(finding: &Finding) -> Option<Pool> {
        let parts = &finding.parts;
        let growth = [(PYMALLOC, parts.pymalloc), (ARROW, parts.arrow)];
        let known = growth.into_iter().filter(|(_, bytes)| !bytes.is_nan());
        let (pool, bytes) = known.max_by(|a, b| a.1.total_cmp(&b.1))?;
        let is_outside = finding.causes.first()?.kind == MemoryKind::OutsideMalloc;
        (is_outside && bytes >= 0.5 * parts.outside_malloc).then_some(pool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::{process_and_finding, sample, sizes};
    use crate::report::explain::sentence;
    use crate::report::model::site_history_tests::{growing, growing_with_error};
    use crate::report::model::{Sample, SiteHistory};
    use crate::report::units::MB;

    /// Sentence and remedy for growth outside malloc, of which a share is in this pool.
    fn explanation(pool: Option<Size>, share: f64) -> (String, String) {
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
        (sentence(&process, &finding), remedy(&process, &finding))
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
            let (sentence, remedy) = explanation(Some(size), 0.8);
            assert!(sentence.contains(name), "{sentence}");
            assert!(remedy.contains(advice), "{remedy}");
        }
    }

    #[test]
    fn a_pool_with_a_small_part_of_the_growth_is_not_named() {
        for (pool, share) in [(None, 0.0), (Some(Size::Arrow), 0.3)] {
            let (sentence, remedy) = explanation(pool, share);
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
            (sentence(&process, &finding), remedy(&process, &finding))
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

    /// A process whose live memory grows by 10 MB per round, with these bytes at one site by round.
    fn with_sites(held: impl Fn(u64) -> u64) -> (String, String) {
        with_history(growing(&(0..24).map(held).collect::<Vec<_>>()))
    }

    fn with_history(history: SiteHistory) -> (String, String) {
        let marker = |round: usize| {
            let live = 20.0 + 10.0 * round as f64;
            let kinds = [(Size::Rss, 10.0 + live), (Size::Live, live)];
            sample(round, sizes(&kinds))
        };
        let (mut process, finding) = process_and_finding((0..24).map(marker));
        process.allocation_sites = history;
        (sentence(&process, &finding), remedy(&process, &finding))
    }

    #[test]
    fn growth_in_small_blocks_is_named_and_no_line_is_promised() {
        let (sentence, remedy) = with_sites(|_| 1 << 20);
        let part = " 249.0 MB are in blocks below `FLARENA_RECYCLE_MIN`";
        assert!(sentence.contains(part), "{sentence}");
        assert!(remedy.contains("FLARENA_SITES_SAMPLE"), "{remedy}");
        assert!(!remedy.contains("lines below"), "{remedy}");
    }

    #[test]
    fn sampled_small_blocks_are_not_called_unrecorded() {
        let history = growing_with_error(&[1 << 20; 24], 1 << 18);
        let (sentence, remedy) = with_history(history);
        assert!(!sentence.contains("are in blocks below"), "{sentence}");
        assert!(remedy.contains("lines below"), "{remedy}");
    }

    #[test]
    fn growth_in_recorded_blocks_points_to_their_lines() {
        let (sentence, remedy) = with_sites(|round| (15 + 10 * round) << 20);
        assert!(!sentence.contains("are in blocks below"), "{sentence}");
        assert!(remedy.contains("lines below"), "{remedy}");
    }

    /// The remedy for free memory that grows, with these settings in force.
    fn retention(alloc: &'static str, settings: &'static str, stages: [&'static str; 2]) -> String {
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
        remedy(&process, &finding)
    }

    #[test]
    fn a_remedy_names_no_setting_that_is_in_force() {
        let stages = ["train", "send"];
        let few = retention("glibc", "", stages);
        assert!(few.contains("JEMALLOC") && !few.contains("ARENA"), "{few}");
        let many = retention("glibc", "MALLOC_ARENA_MAX=64", stages);
        assert!(many.contains("MALLOC_ARENA_MAX=2"), "{many}");
        let slow = retention("jemalloc", "", stages);
        assert!(slow.contains("MALLOC_CONF="), "{slow}");
        let fast = "MALLOC_CONF=dirty_decay_ms:1000,muzzy_decay_ms:0";
        let text = retention("jemalloc", fast, stages);
        assert_eq!(text, "call `flarena.trim()` at the end of each round");
        let text = retention("jemalloc", fast, ["send", "after_trim"]);
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
}
