//! Parts of sentences that several verdicts use, so that each number has one wording.

use crate::report::analyse::stats::Estimate;
use crate::report::analyse::{Cause, Finding, MemoryKind, NamedStep, Quantity};
use crate::report::model::Size;
use crate::report::units::{duration, in_one_unit, plural, printable, signed_size, Amount};

/// Smaller causes are not named beside the largest one.
const MIN_NAMED_SHARE: f64 = 0.1;

pub const HIGHEST_RSS: &str = "the highest RSS between the markers";

/// At the beginning of a sentence.
pub fn name_of(quantity: Quantity, finding: &Finding) -> &'static str {
    match quantity {
        Quantity::Live => "live memory",
        Quantity::Swap => "swap",
        Quantity::AfterCollections => "memory after full garbage collections",
        Quantity::Footprint if finding.typical.get(Size::Swap) > Some(0.0) => "RSS plus swap",
        Quantity::Peak => HIGHEST_RSS,
        Quantity::Footprint => "RSS",
        Quantity::WithoutCached => "RSS without cached pages",
    }
}

/// `over 18 rounds at stage send`, or `over the last 18 rounds (without the first 2) at stage send`
pub fn rounds_phrase(finding: &Finding) -> String {
    let settled = counted(settled_rounds(finding), finding);
    let rounds = match finding.trend.warm_up {
        0 => format!("over {settled}"),
        1 => format!("over the last {settled} (without the first)"),
        first => format!("over the last {settled} (without the first {first})"),
    };
    let stage = match finding.quantity == Quantity::Peak {
        // The peaks are between the stages.
        true => String::new(),
        false => format!(" at stage {}", printable(&finding.series.stage)),
    };
    rounds + &stage
}

/// The rounds after the warm-up.
pub fn settled_rounds(finding: &Finding) -> u64 {
    let warm_up = finding.trend.warm_up as u64;
    finding.series.rounds.saturating_sub(warm_up)
}

/// `3 rounds`, or markers if the axis shows no rounds
pub fn counted(n: u64, finding: &Finding) -> String {
    plural(n, finding.rounds_unit().name())
}

/// A change that may be a rise or a fall, `+10.0 MB/round (95 % interval: +9.10 to +10.4 MB)`, or a rise without signs.
pub fn rate(finding: &Finding, amount: Amount) -> String {
    rate_per(&finding.trend.slope, finding.unit.name(), amount)
}

pub fn rate_per(slope: &Estimate, unit: &str, amount: Amount) -> String {
    let ([value, low, high], size) = numbers(slope, amount);
    format!("{value}{size}/{unit} (95 % interval: {low} to {high}{size})")
}

/// A slope and its bounds, and the unit behind them, unless each number has its own.
pub fn numbers(slope: &Estimate, amount: Amount) -> ([String; 3], String) {
    in_one_unit([slope.value, slope.low, slope.high], amount)
}

/// `RSS grows by 10.0 MB/round (95 % interval: ...) over 18 rounds at stage send, which is 3.51 GB/h
/// (95 % interval: ...)`
pub fn growth_clause(finding: &Finding) -> String {
    let pause = finding.pace.as_ref().and_then(|pace| pace.pause);
    let pause = pause.map(|pause| format!(" without {} of pauses", duration(pause)));
    let pause = pause.unwrap_or_default();
    let hourly = finding.hourly;
    let hourly =
        hourly.map(|hourly| format!(", which is {}{pause}", rate_per(&hourly, "h", Amount::Size)));
    format!(
        "{} grows by {} {}{}",
        name_of(finding.quantity, finding),
        rate(finding, Amount::Size),
        rounds_phrase(finding),
        hourly.unwrap_or_default(),
    )
}

fn kind_name(kind: MemoryKind) -> &'static str {
    match kind {
        MemoryKind::Live => "live memory",
        MemoryKind::KeptFree => "free memory of the allocator",
        MemoryKind::File => "pages of files",
        MemoryKind::Shmem => "shared memory",
        MemoryKind::Pinned => "memory pinned for the GPU",
        MemoryKind::Swap => "memory in swap",
        MemoryKind::OutsideMalloc => "memory outside malloc",
        MemoryKind::Unknown => "memory of an unknown kind",
    }
}

/// `2 steps: +120.0 MB at round 20 (live memory), +40.0 MB at round 31`; `None` without a step.
pub fn steps(finding: &Finding) -> Option<String> {
    /// After fewer samples it is not known whether the change goes on.
    const MIN_SAMPLES: usize = 3;
    let step = |step: &NamedStep| {
        let (bytes, unit) = (signed_size(step.bytes), finding.unit);
        let is_known = step.kind != MemoryKind::Unknown;
        let kind = is_known.then(|| format!(" ({})", kind_name(step.kind)));
        let late = match step.samples < MIN_SAMPLES {
            true => ", too late to tell whether it goes on",
            false => "",
        };
        let kind = kind.unwrap_or_default();
        format!("{bytes} at {unit} {:.0}{kind}{late}", step.at)
    };
    let all: Vec<String> = finding.steps.iter().map(step).collect();
    let count = plural(all.len() as i128, "step");
    (!all.is_empty()).then(|| format!("{count}: {}", all.join(", ")))
}

/// `; 62 % of the growth is live memory; 30 % of the growth is shared memory`; empty if it is not known.
pub fn shares(finding: &Finding, change: &str) -> String {
    let largest = finding.causes.first();
    let is_known = largest.is_some_and(|cause| cause.kind != MemoryKind::Unknown);
    let is_named = |cause: &&Cause| is_known && cause.share >= MIN_NAMED_SHARE;
    let share = |cause: &Cause| {
        let (percent, kind) = (100.0 * cause.share, kind_name(cause.kind));
        format!("; {percent:.0} % of the {change} is {kind}")
    };
    finding.causes.iter().filter(is_named).map(share).collect()
}

/// `the marker train of round 12`
pub fn place(stage: &str, round: Option<i64>) -> String {
    let stage = printable(stage);
    match round {
        Some(round) => format!("the marker {stage} of round {round}"),
        None => format!("the marker {stage}"),
    }
}
