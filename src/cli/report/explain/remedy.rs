//! The settings or the code to change, for each verdict.

use flarena_shared::stages::Stage;

use crate::report::analyse::{Finding, MemoryKind, Verdict};
use crate::report::model::Process;
use crate::report::sites;

/// A cause with at least this share of the growth gets a remedy, also if it did not decide the verdict.
const MIN_SHARE: f64 = 0.25;

/// The remedy of the verdict, and for growth those of all large causes.
pub fn of_verdict(process: &Process, finding: &Finding) -> Option<String> {
    let large = finding
        .causes
        .iter()
        .filter(|cause| cause.share >= MIN_SHARE);
    let large: Vec<_> = large.filter(|_| finding.verdict.is_growth()).collect();
    let mut verdicts = vec![finding.verdict];
    for verdict in large.iter().map(|cause| cause.verdict()) {
        if !verdicts.contains(&verdict) {
            verdicts.push(verdict);
        }
    }
    let remedy = |verdict| alone(verdict, process, finding);
    let mut remedies: Vec<String> = verdicts.into_iter().filter_map(remedy).collect();
    let is_pinned = large.iter().any(|cause| cause.kind == MemoryKind::Pinned);
    if is_pinned && largest_live(finding) != Some(MemoryKind::Pinned) {
        remedies.push(PINNED.to_owned());
    }
    (!remedies.is_empty()).then(|| remedies.join("; "))
}

fn alone(verdict: Verdict, process: &Process, finding: &Finding) -> Option<String> {
    let text = match verdict {
        Verdict::Retention => return Some(retention(process, finding)),
        Verdict::LiveGrowth => live_growth(process, finding),
        Verdict::Swap => {
            "give the job more memory, or run fewer jobs beside it: a job whose pages are in swap is slow"
        }
        Verdict::FileBacked if is_mostly_shared(finding) => {
            "look in /dev/shm for shared tensors that no process removes; with a GPU it may also be \
             pinned memory, which `flarena.mark()` counts"
        }
        Verdict::FileBacked => {
            "no setting changes this; if the memory limit is near, map less of the data set or model"
        }
        Verdict::Growth => {
            "start the job with `flarena run --profile`: its markers show live and free memory separately"
        }
        Verdict::CyclicGarbage
        | Verdict::Unclear
        | Verdict::WarmingUp
        | Verdict::Falling
        | Verdict::Flat
        | Verdict::NotEnoughRounds => return None,
    };
    Some(text.to_owned())
}

pub fn is_mostly_shared(finding: &Finding) -> bool {
    finding.parts.shmem > finding.parts.file
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

const PINNED: &str = "call `flarena.trim()` at the end of each round, which empties PyTorch's \
    cache of pinned memory; if growth continues, look for pinned tensors that the program keeps";

fn live_growth(process: &Process, finding: &Finding) -> &'static str {
    let history = &process.allocation_sites;
    if let Some(pool) = Pool::largest(finding) {
        return pool.remedy;
    }
    match () {
        () if largest_live(finding) == Some(MemoryKind::Pinned) => PINNED,
        () if !is_served_by_malloc(finding) => {
            "run `flarena doctor --all PID` while the process runs; it names the memory outside malloc"
        }
        () if sites::explanation(history, finding.verdict).is_some() => {
            "look at the lines below: they probably fill a list, cache or history that never drops \
             entries"
        }
        () if process.records_sites() || !history.rounds().is_empty() => {
            "look for a list, cache or history that gains entries and never drops them"
        }
        () => {
            "look for a list, cache or history that gains entries and never drops them; \
             `flarena run --sites` names the line"
        }
    }
}

/// Settings that are not in force yet.
fn retention(process: &Process, finding: &Finding) -> String {
    /// The longest decay that needs no remedy.
    const SHORT_DECAY_MS: f64 = 100.0;
    /// The library sets 2 or 4 arenas; markers name only another number.
    const FEW_ARENAS: f64 = 4.0;
    let number = |setting| process.setting(setting)?.parse::<f64>().ok();
    let has_short_decay = number("FLARENA_DECAY_MS").is_some_and(|ms| ms <= SHORT_DECAY_MS);
    let has_many_arenas = number("MALLOC_ARENA_MAX").is_some_and(|n| n > FEW_ARENAS);
    let is_cached = 2.0 * finding.parts.recycled > finding.parts.kept_free;
    let is_jemalloc = process.alloc.as_deref() == Some("jemalloc");
    let setting = match () {
        () if is_cached => {
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
pub struct Pool {
    /// Completes "memory outside malloc 80 % (...)".
    pub name: &'static str,
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
    pub fn largest(finding: &Finding) -> Option<Pool> {
        let parts = &finding.parts;
        let growth = [(PYMALLOC, parts.pymalloc), (ARROW, parts.arrow)];
        let known = growth.into_iter().filter(|(_, bytes)| !bytes.is_nan());
        let (pool, bytes) = known.max_by(|a, b| a.1.total_cmp(&b.1))?;
        let is_outside = finding.causes.first()?.kind == MemoryKind::OutsideMalloc;
        (is_outside && bytes >= 0.5 * parts.outside_malloc).then_some(pool)
    }
}
