//! Parts of sentences that several verdicts use, so that each number has one wording.

use crate::report::analyse::stats::Slope;
use crate::report::analyse::{Cause, Finding, MemoryKind, NamedStep, Quantity};
use crate::report::model::{Process, Size};
use crate::report::units::{duration, plural, printable, range, signed_size, size, Amount};

/// Smaller causes are not named beside the largest one.
const MIN_NAMED_SHARE: f64 = 0.1;

/// The quantity of the finding, at the beginning of a sentence.
pub fn quantity_name(finding: &Finding) -> &'static str {
    match finding.quantity {
        Quantity::Live => "live memory",
        Quantity::Swap => "swap",
        Quantity::AfterCollections => "memory after full garbage collections",
        Quantity::Footprint if finding.typical[Size::Swap] > 0.0 => "RSS plus swap",
        Quantity::Footprint => "RSS",
        Quantity::WithoutCached => "RSS without cached pages",
    }
}

/// `over 18 rounds at stage send`; for the last rounds `over the last 18 rounds (after 2 of warm-up) at
/// stage send`, or `... (the first 20 were flat) at stage send`
pub fn rounds_phrase(finding: &Finding) -> String {
    let warm_up = finding.trend.warm_up;
    let settled = counted(settled_rounds(finding), finding);
    let was_flat = finding.trend.rise_before.abs() < finding.trend.threshold_in_total();
    let rounds = match warm_up {
        0 => format!("over {settled}"),
        _ if was_flat && finding.trend.is_growing() => {
            format!("over the last {settled} (the first {warm_up} were flat)")
        }
        _ => format!("over the last {settled} (after {warm_up} of warm-up)"),
    };
    format!("{rounds} at stage {}", printable(&finding.stage))
}

/// The rounds after the warm-up.
pub fn settled_rounds(finding: &Finding) -> u64 {
    finding.rounds.saturating_sub(finding.trend.warm_up as u64)
}

/// `3 rounds`, or markers if the axis shows no rounds
pub fn counted(n: u64, finding: &Finding) -> String {
    plural(n, finding.rounds_unit().name())
}

/// `between 300.6 and 520.0 MB`
pub fn between((low, high): (f64, f64)) -> String {
    format!("between {}", range(low, "and", high, Amount::Size))
}

/// A change that may be a rise or a fall, `+10.0 MB/round (95 % interval: +9.10 to +10.4 MB)`, or a rise without signs.
pub fn rate(finding: &Finding, amount: Amount) -> String {
    rate_per(&finding.trend.slope, finding.unit.name(), amount)
}

pub fn rate_per(slope: &Slope, unit: &str, amount: Amount) -> String {
    let per_x = match amount {
        Amount::Size => size(slope.per_x),
        Amount::Change => signed_size(slope.per_x),
    };
    let interval = range(slope.low, "to", slope.high, amount);
    format!("{per_x}/{unit} (95 % interval: {interval})")
}

/// `RSS grows by 10.0 MB/round (95 % interval: ...) over 18 rounds at stage send, which is 3.51 GB/h
/// (95 % interval: ...)`
pub fn growth_clause(finding: &Finding) -> String {
    let hourly = finding.per_hour(finding.trend.slope);
    let pause = finding.pause.map_or(String::new(), |pause| {
        format!(" without a pause of {}", duration(pause))
    });
    let hourly = hourly.map_or(String::new(), |hourly| {
        format!(", which is {}{pause}", rate_per(&hourly, "h", Amount::Size))
    });
    format!(
        "{} grows by {} {}{hourly}",
        quantity_name(finding),
        rate(finding, Amount::Size),
        rounds_phrase(finding),
    )
}

/// The name of a kind of memory, for a process with this allocator.
pub fn kind_name(kind: MemoryKind, process: &Process) -> String {
    let allocator = process.alloc.as_deref().unwrap_or("malloc");
    match kind {
        MemoryKind::Live => "live memory".to_owned(),
        MemoryKind::KeptFree => format!("free memory kept by {allocator}"),
        MemoryKind::File => "pages of files".to_owned(),
        MemoryKind::Shmem => "shared memory".to_owned(),
        MemoryKind::Pinned => "memory pinned for the GPU".to_owned(),
        MemoryKind::Swap => "memory in swap".to_owned(),
        MemoryKind::OutsideMalloc => "memory outside malloc".to_owned(),
        MemoryKind::Unknown => "memory of an unknown kind".to_owned(),
    }
}

/// `one step of +120.0 MB at round 20 (live memory), flat before and after`; `None` without a step.
pub fn steps(process: &Process, finding: &Finding) -> Option<String> {
    /// More steps are counted.
    const NAMED: usize = 3;
    let step = |step: &NamedStep| {
        let kind = match step.kind {
            MemoryKind::Unknown => String::new(),
            kind => format!(" ({})", kind_name(kind, process)),
        };
        format!(
            "{} at {} {:.0}{kind}",
            signed_size(step.bytes),
            finding.unit,
            step.at
        )
    };
    let steps = &finding.steps;
    let named: Vec<String> = steps.iter().take(NAMED).map(step).collect();
    match steps.len() {
        0 => None,
        1 => Some(format!("one step of {}, flat before and after", named[0])),
        n if n <= NAMED => Some(format!(
            "{n} steps: {}; flat between them",
            named.join(", ")
        )),
        n => Some(format!(
            "{n} steps, the first {}; flat between them",
            named[0]
        )),
    }
}

/// `62 % of the growth is live memory, 30 % is free memory kept by glibc`
pub fn shares(process: &Process, finding: &Finding, change: &str) -> String {
    let is_named = |cause: &&Cause| cause.share >= MIN_NAMED_SHARE;
    let share = |(i, cause): (usize, &Cause)| {
        let name = kind_name(cause.kind, process);
        let of = match i {
            0 => format!(" of the {change}"),
            _ => String::new(),
        };
        format!("{:.0} %{of} is {name}", 100.0 * cause.share)
    };
    let named = finding.causes.iter().filter(is_named).enumerate();
    named.map(share).collect::<Vec<_>>().join(", ")
}

/// `, live 87.8 MB`, which is appended to another size; empty if unknown.
pub fn live_suffix(bytes: f64) -> String {
    if bytes.is_nan() {
        return String::new();
    }
    format!(", live {}", size(bytes))
}
