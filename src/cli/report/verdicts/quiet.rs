//! Nothing to act on: flat, unclear, warming up, too few rounds.

use crate::report::finding::{Finding, Verdict};
use crate::report::phrase::{plural, rate, settled, what};
use crate::report::stats::{Course, LEAST, LEAST_GROWING};
use crate::report::units::size;

/// A range of more than this share of the level is said as a range.
const WIDE: f64 = 0.2;

pub fn sentence(finding: &Finding) -> String {
    match finding.verdict {
        Verdict::NotEnoughRounds => {
            let seen = plural(finding.rounds, finding.counted());
            format!(
                "{seen}: {LEAST} are needed for a verdict, {LEAST_GROWING} settled ones to call it growth."
            )
        }
        Verdict::WarmingUp => warming_up(finding),
        Verdict::Unclear => format!(
            "{} {}: {}. Growth could hide in that, or nothing; watch more {}s.",
            lies(finding),
            settled(finding),
            rate(finding),
            finding.counted(),
        ),
        _ => flat(finding),
    }
}

/// `RSS stays at 512.3 MB`, or the range that it swings in.
fn lies(finding: &Finding) -> String {
    let (low, high) = finding.range;
    let typical = finding.typical.footprint();
    if high - low > WIDE * typical {
        format!(
            "{} swings from {} to {}",
            what(finding),
            size(low),
            size(high)
        )
    } else {
        format!("{} stays at {}", what(finding), size(typical))
    }
}

fn flat(finding: &Finding) -> String {
    if finding.by_collections {
        let (low, high) = finding.range;
        let (what, rounds) = (what(finding), settled(finding));
        return format!(
            "{what} lies between {} and {} {rounds}; what full garbage collections leave does not rise.",
            size(low),
            size(high)
        );
    }
    if finding.trend.course == Course::Falling {
        return format!(
            "{} falls: {} {}.",
            what(finding),
            rate(finding),
            settled(finding)
        );
    }
    format!(
        "{} {}: {}; {}/{} would matter.",
        lies(finding),
        settled(finding),
        rate(finding),
        size(finding.trend.threshold),
        finding.unit,
    )
}

fn warming_up(finding: &Finding) -> String {
    let (what, over, rate) = (what(finding), settled(finding), rate(finding));
    let left = finding.rounds.saturating_sub(finding.trend.warm_up as u64);
    if left < LEAST_GROWING as u64 {
        format!("{what} rises by {rate} {over}: too few to tell a warm-up from growth.")
    } else {
        format!("{what} still rises, by {rate} {over}, but slower and slower.")
    }
}
