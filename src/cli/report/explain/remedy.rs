//! The settings or the code to change, for each verdict.

use flarena_shared::stages::Stage;

use crate::report::analyse::{Allocated, Cause, Finding, GpuGrowth, MemoryKind, Quantity, Verdict};
use crate::report::sites;

/// A cause with at least this share of the growth gets a remedy, also if it did not decide the verdict.
const MIN_SHARE: f64 = 0.25;

/// The remedies of the verdict, and for growth those of all large causes.
pub fn of_verdict(finding: &Finding) -> Option<String> {
    let is_large = |cause: &&Cause| finding.verdict.is_growth() && cause.share >= MIN_SHARE;
    let large = finding.causes.iter().filter(is_large);
    let is_pinned = large.clone().any(|cause| cause.kind == MemoryKind::Pinned);
    let verdicts = [finding.verdict].into_iter();
    let verdicts = verdicts.chain(large.map(|cause| cause.verdict()));
    let all = verdicts.filter_map(|verdict| alone(verdict, finding));
    let mut remedies: Vec<String> = Vec::new();
    for remedy in all.chain(is_pinned.then(|| PINNED.to_owned())) {
        if !remedies.contains(&remedy) {
            remedies.push(remedy);
        }
    }
    (!remedies.is_empty()).then(|| remedies.join("; "))
}

fn alone(verdict: Verdict, finding: &Finding) -> Option<String> {
    let text = match verdict {
        Verdict::Retention => return Some(retention(finding)),
        Verdict::LiveGrowth => return Some(live_growth(finding)),
        Verdict::Swap => {
            "give the job more memory, or run fewer jobs beside it: a job whose pages are in swap is slow"
        }
        Verdict::FileBacked if finding.parts.is_mostly_shared() => {
            "look in /dev/shm for shared tensors that no process removes; with a GPU it may also be \
             pinned memory, which `flarena.mark()` counts"
        }
        Verdict::FileBacked => {
            "no setting changes this; if the memory limit is near, map less of the data set or model"
        }
        Verdict::Growth if finding.quantity == Quantity::Peak => {
            "look for work between two markers that takes more memory each time, such as a message, batch or history that \
             gains entries; `flarena.mark()` between its parts shows where the peak is"
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

const PINNED: &str = "call `flarena.trim()` at the end of each round, which empties PyTorch's \
    cache of pinned memory; if growth continues, look for pinned tensors that the program keeps";

fn live_growth(finding: &Finding) -> String {
    let process = finding.process;
    if let Some(remedy) = largest_pool(finding) {
        return remedy.to_owned();
    }
    let is_live = |cause: &&Cause| cause.verdict() == Verdict::LiveGrowth;
    let largest = finding.causes.iter().find(is_live).map(|cause| cause.kind);
    let history = &process.allocation_sites;
    let is_recorded = process.records_sites() || !history.rounds.is_empty();
    let place = match () {
        () if largest == Some(MemoryKind::Pinned) => return PINNED.to_owned(),
        () if largest == Some(MemoryKind::OutsideMalloc) => return OUTSIDE_MALLOC.to_owned(),
        () if sites::explanation(history, finding.verdict).is_some() => {
            ", probably at the lines below"
        }
        () if process.processes > 1 => return NEXT_PROCESS.to_owned(),
        () if is_recorded => "",
        () => "; `flarena run --sites` names the line",
    };
    format!("look for a list, cache or history that gains entries and never drops them{place}")
}

const OUTSIDE_MALLOC: &str =
    "run `flarena doctor --all PID` while the process runs; it names the memory outside malloc, such as stacks and mapped buffers";
const NEXT_PROCESS: &str = "each process starts with empty memory: look for a checkpoint, history or message that it reads and that gains entries";

pub fn of_gpu(growth: &GpuGrowth) -> &'static str {
    match growth.allocated {
        Allocated::Grows | Allocated::GrowsInside => {
            "GPU: look for tensors that are kept from round to round, such as losses that keep their graph"
        }
        Allocated::DoesNotGrow | Allocated::Unclear => {
            "GPU: set cuda_empty_cache=True in the recipe, or NVFLARE_CUDA_EMPTY_CACHE=true with \
             NVFLARE_CLIENT_MEMORY_GC_ROUNDS=1. If the cache grows again inside a round, its free memory is in pieces: \
             PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
        }
    }
}

/// Settings that are not in force yet.
fn retention(finding: &Finding) -> String {
    /// The longest decay that needs no remedy.
    const SHORT_DECAY_MS: f64 = 100.0;
    /// The library sets 2 or 4 arenas; markers name only another number.
    const FEW_ARENAS: f64 = 4.0;
    let process = finding.process;
    let number = |setting| process.setting(setting)?.parse::<f64>().ok();
    let has_short_decay = number("FLARENA_DECAY_MS").is_some_and(|ms| ms <= SHORT_DECAY_MS);
    let has_many_arenas = number("MALLOC_ARENA_MAX").is_some_and(|n| n > FEW_ARENAS);
    let [recycled, kept] = [finding.parts.recycled, finding.parts.kept_free];
    let is_cached = 2.0 * recycled.unwrap_or(0.0) > kept.unwrap_or(0.0);
    let export = match process.alloc.as_deref() {
        _ if is_cached => (!has_short_decay).then_some("`export FLARENA_DECAY_MS=100`"),
        Some("jemalloc") if process.setting("MALLOC_CONF").is_some() => None,
        Some("jemalloc") => {
            Some("`export MALLOC_CONF=dirty_decay_ms:1000,muzzy_decay_ms:0`")
        }
        _ if has_many_arenas => Some(
            "`export NVFLARE_ENABLE_JEMALLOC_PRELOAD=true`, or `export MALLOC_ARENA_MAX=2` (client) or `4` (server),",
        ),
        _ => Some("`export NVFLARE_ENABLE_JEMALLOC_PRELOAD=true`"),
    };
    let setting = export.map(|export| format!("{export} before the start"));
    let trims = process.series(Stage::AfterTrim.name()).is_some();
    let trim = (!trims).then(|| "call `flarena.trim()` at the end of each round".to_owned());
    let remedies: Vec<String> = setting.into_iter().chain(trim).collect();
    match remedies.is_empty() {
        true => "the settings that help are in force; the free memory is between live \
                 blocks and returns when the program frees these"
            .to_owned(),
        false => remedies.join(", or "),
    }
}

const PYMALLOC: &str =
    "look for a list, cache or history of small Python objects that never drops entries; \
    `flarena run --sites` names lines for objects up to 512 bytes only with `PYTHONMALLOC=malloc`";
const ARROW: &str = "look for Arrow tables or batches that the program keeps; with \
    `ARROW_DEFAULT_MEMORY_POOL=system`, the default of `flarena run`, `flarena run --sites` names the line";

/// For the allocator beside malloc that has at least half of the growth outside malloc. `None` if another kind of memory
/// grows more.
fn largest_pool(finding: &Finding) -> Option<&'static str> {
    let parts = &finding.parts;
    let growth = [(PYMALLOC, parts.pymalloc), (ARROW, parts.arrow)];
    let known = growth.map(|(remedy, bytes)| (remedy, bytes.unwrap_or(0.0)));
    let (remedy, bytes) = known.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let is_outside = finding.causes.first()?.kind == MemoryKind::OutsideMalloc;
    (is_outside && bytes >= 0.5 * parts.outside_malloc).then_some(remedy)
}
