//! Parts of sentences that several verdicts use, so that each number has one wording.

use crate::report::analyse::stats::Slope;
use crate::report::analyse::{Cause, Finding, MemoryKind, Quantity};
use crate::report::model::{Process, Size};
use crate::report::units::{plural, printable, signed_size, size};

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
    }
}

/// `over 18 rounds (after 2 of warm-up)`
pub fn rounds_phrase(finding: &Finding) -> String {
    let warm_up = finding.trend.warm_up;
    let settled = plural(settled_rounds(finding), finding.rounds_unit());
    match warm_up {
        0 => format!("over {settled}"),
        _ => format!("over {settled} (after {warm_up} of warm-up)"),
    }
}

/// The rounds after the warm-up.
pub fn settled_rounds(finding: &Finding) -> u64 {
    finding.rounds.saturating_sub(finding.trend.warm_up as u64)
}

/// `+10.0 MB/round (95 %: +9.10 MB to +10.4 MB)`
pub fn rate(finding: &Finding) -> String {
    let per_x = signed_size(finding.trend.slope.per_x);
    format!("{per_x}/{} ({})", finding.unit, interval(finding))
}

/// `95 %: +9.10 MB to +10.4 MB`
pub fn interval(finding: &Finding) -> String {
    let Slope { low, high, .. } = finding.trend.slope;
    format!("95 %: {} to {}", signed_size(low), signed_size(high))
}

/// `RSS grows by +10.0 MB/round (95 %: ...), +3.51 GB/h, over 18 rounds at send`
pub fn growth_clause(finding: &Finding) -> String {
    let per_hour = finding
        .per_hour(finding.trend.slope.per_x)
        .map_or(String::new(), |bytes| format!(" {}/h,", signed_size(bytes)));
    format!(
        "{} grows by {},{per_hour} {} at {}",
        quantity_name(finding),
        rate(finding),
        rounds_phrase(finding),
        printable(&finding.stage),
    )
}

/// `live memory 62 %, free memory kept by glibc 30 %`
pub fn shares(process: &Process, finding: &Finding) -> String {
    let is_named = |cause: &&Cause| cause.share >= MIN_NAMED_SHARE;
    let share = |cause: &Cause| {
        let allocator = process.alloc.as_deref().unwrap_or("malloc");
        let name = match cause.kind {
            MemoryKind::Live => "live memory",
            MemoryKind::KeptFree => &format!("free memory kept by {allocator}"),
            MemoryKind::File => "file pages",
            MemoryKind::Shmem => "shared memory",
            MemoryKind::Swap => "swapped pages",
            MemoryKind::OutsideMalloc => "memory outside malloc",
            MemoryKind::Unknown => "unknown",
        };
        format!("{name} {:.0} %", 100.0 * cause.share)
    };
    let named = finding.causes.iter().filter(is_named);
    named.map(share).collect::<Vec<_>>().join(", ")
}

/// `, live 87.8 MB`, which is appended to another size; empty if unknown.
pub fn live_suffix(bytes: f64) -> String {
    if bytes.is_nan() {
        return String::new();
    }
    format!(", live {}", size(bytes))
}
