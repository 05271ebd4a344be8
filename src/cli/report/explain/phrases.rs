//! Parts of sentences that several verdicts use, so that a number is worded in one way.

use crate::report::analyse::finding::{Cause, Finding, Holder, Quantity};
use crate::report::analyse::stats::Slope;
use crate::report::model::{Process, Size};
use crate::report::units::{change, printable, size};

/// What must grow to be named beside the largest cause.
const TELLING_SHARE: f64 = 0.1;

pub fn plural(n: impl Into<i128>, unit: &str) -> String {
    match n.into() {
        1 => format!("1 {unit}"),
        n => format!("{n} {unit}s"),
    }
}

/// What was judged, as a sentence begins with it.
pub fn what(finding: &Finding) -> &'static str {
    match finding.quantity {
        Quantity::Live => "live memory",
        Quantity::Swap => "swap",
        Quantity::Floor => "what full garbage collections leave",
        Quantity::Footprint if finding.typical[Size::Swap] > 0.0 => "RSS and swap",
        Quantity::Footprint => "RSS",
    }
}

/// `over 18 rounds (2 of warm-up left out)`
pub fn settled(finding: &Finding) -> String {
    let left = finding.rounds.saturating_sub(finding.trend.warm_up as u64);
    let warm_up = match finding.trend.warm_up {
        0 => String::new(),
        n => format!(" ({n} of warm-up left out)"),
    };
    format!("over {}{warm_up}", plural(left, finding.counted()))
}

/// `+10.0 MB/round (95 %: +9.10 MB to +10.4 MB)`
pub fn rate(finding: &Finding) -> String {
    let per_x = change(finding.trend.slope.per_x);
    format!("{per_x}/{} ({})", finding.unit, interval(finding))
}

/// `95 %: +9.10 MB to +10.4 MB`
pub fn interval(finding: &Finding) -> String {
    let Slope { low, high, .. } = finding.trend.slope;
    format!("95 %: {} to {}", change(low), change(high))
}

/// `RSS grows by +10.0 MB/round (95 %: ...), 3.51 GB/h, over 18 rounds at send`
pub fn grows(finding: &Finding) -> String {
    let per_hour = finding
        .per_hour(finding.trend.slope.per_x)
        .map_or(String::new(), |bytes| format!(" {}/h,", change(bytes)));
    format!(
        "{} grows by {},{per_hour} {} at {}",
        what(finding),
        rate(finding),
        settled(finding),
        printable(&finding.stage),
    )
}

/// `live memory 62 %, free memory that glibc keeps 30 %`
pub fn shares(process: &Process, finding: &Finding) -> String {
    let telling = |cause: &&Cause| cause.share >= TELLING_SHARE;
    let one = |cause: &Cause| {
        let keeper = process.alloc.as_deref().unwrap_or("malloc");
        let name = match cause.holder {
            Holder::Live => "live memory",
            Holder::HeldBack => &format!("free memory that {keeper} keeps"),
            Holder::File => "pages of files",
            Holder::Shmem => "shared memory",
            Holder::Swap => "swapped pages",
            Holder::Outside => "memory outside of malloc",
            Holder::Unknown => "unknown",
        };
        format!("{name} {:.0} %", 100.0 * cause.share)
    };
    let shares: Vec<String> = finding.causes.iter().filter(telling).map(one).collect();
    shares.join(", ")
}

/// `, live 87.8 MB` behind another size; nothing where it is not known.
pub fn and_live(bytes: f64) -> String {
    if bytes.is_nan() {
        return String::new();
    }
    format!(", live {}", size(bytes))
}

/// `RSS stays near 512.3 MB`
pub fn level(finding: &Finding) -> String {
    format!("RSS stays near {}", size(finding.typical.footprint()))
}
