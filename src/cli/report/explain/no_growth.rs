//! Nothing to act on: flat, unclear, warming up, too few rounds.

use crate::report::analyse::finding::{Finding, Verdict};
use crate::report::analyse::stats::{Course, Slope, LEAST, LEAST_GROWING};
use crate::report::explain::phrases::{interval, plural, rate, settled, what};
use crate::report::units::{is_shown, size};

/// A range of more than this share of the level is said as a range.
const WIDE: f64 = 0.2;

pub fn sentence(finding: &Finding) -> String {
    let (what, over, rate) = (what(finding), settled(finding), rate(finding));
    let counted = finding.counted();
    match finding.verdict {
        Verdict::NotEnoughRounds => {
            let seen = plural(finding.rounds, counted);
            format!(
                "{seen}: {LEAST} are needed for a verdict, {LEAST_GROWING} settled ones to call it growth."
            )
        }
        Verdict::WarmingUp => {
            let left = finding.rounds.saturating_sub(finding.trend.warm_up as u64);
            if left < LEAST_GROWING as u64 {
                format!("{what} rises by {rate} {over}: too few to tell a warm-up from growth.")
            } else {
                format!("{what} still rises, by {rate} {over}, but slower and slower.")
            }
        }
        Verdict::Unclear if is_sure(finding) => format!(
            "{what} changes by {rate} {over}. Watch more {counted}s: whether that matters is not sure yet."
        ),
        Verdict::Unclear => {
            let lies = lies(finding);
            format!("{lies} {over}: {rate}. Growth could hide in that, or nothing; watch more {counted}s.")
        }
        _ if finding.by_collections => {
            let (low, high) = (size(finding.range.0), size(finding.range.1));
            format!("{what} lies between {low} and {high} {over}; what full garbage collections leave does not rise.")
        }
        _ if finding.trend.course == Course::Falling => format!("{what} falls: {rate} {over}."),
        _ if is_sure(finding) => drifts(finding),
        _ => {
            let (lies, matters) = (lies(finding), matters(finding));
            format!("{lies} {over}: {rate}; {matters} would matter.")
        }
    }
}

/// `RSS stays at 512.3 MB`, or the range that it swings in.
fn lies(finding: &Finding) -> String {
    let (low, high) = finding.range;
    let (what, typical) = (what(finding), finding.typical.footprint());
    if high - low > WIDE * typical {
        format!("{what} swings from {} to {}", size(low), size(high))
    } else {
        format!("{what} stays at {}", size(typical))
    }
}

/// `0.35 MB/round`
fn matters(finding: &Finding) -> String {
    format!("{}/{}", size(finding.trend.threshold), finding.unit)
}

/// Its whole interval lies on one side of zero, also as it is printed: it does not stay.
fn is_sure(finding: &Finding) -> bool {
    let Slope { low, high, .. } = finding.trend.slope;
    low > 0.0 && is_shown(low) || high < 0.0 && is_shown(high)
}

/// `RSS, 222.7 MB in the middle, rises by 0.28 MB/round, less than would matter (95 %: +0.22 MB to +0.28 MB;
/// 0.35 MB/round would), over 20 rounds.`
fn drifts(finding: &Finding) -> String {
    let slope = finding.trend.slope.per_x;
    format!(
        "{}, {} in the middle, {} by {}/{}, less than would matter ({}; {} would), {}.",
        what(finding),
        size(finding.typical.footprint()),
        if slope > 0.0 { "rises" } else { "falls" },
        size(slope.abs()),
        finding.unit,
        interval(finding),
        matters(finding),
        settled(finding),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::{judged, sample, sizes};
    use crate::report::model::Size;

    /// What is said of a process with this RSS in MB, by round.
    fn said(rss: impl Fn(f64) -> f64) -> (Verdict, String) {
        let marker = |round| sample(round, sizes(&[(Size::Rss, rss(round as f64))]));
        let (_, finding) = judged((0..20).map(marker));
        (finding.verdict, sentence(&finding))
    }

    #[test]
    fn what_surely_moves_a_little_is_not_said_to_stay() {
        for (slope, moves) in [(0.28, "rises by 0.28"), (-0.28, "falls by 0.28")] {
            let (verdict, text) = said(|round| 220.0 + slope * round);
            assert_eq!(verdict, Verdict::Flat);
            assert!(text.contains(moves) && !text.contains("stays"), "{text}");
        }
        let (_, text) = said(|_| 220.0);
        assert!(text.starts_with("RSS stays at 220.0 MB"), "{text}");
    }

    #[test]
    fn what_surely_rises_but_perhaps_not_by_enough_is_unclear_and_not_said_to_stay() {
        let (verdict, text) = said(|round| 220.0 + 0.4 * round);
        assert_eq!(verdict, Verdict::Unclear, "{text}");
        let said = "RSS changes by +0.40 MB/round (95 %: +0.3";
        assert!(text.starts_with(said), "{text}");
    }
}
