//! Nothing to act on: flat, unclear, warming up, too few rounds.

use crate::report::finding::{Finding, Verdict};
use crate::report::phrase::{interval, plural, rate, settled, what};
use crate::report::stats::{Course, Slope, LEAST, LEAST_GROWING};
use crate::report::units::{is_shown, size};

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
        Verdict::Unclear if is_sure(finding) => format!(
            "{} changes by {} {}. Watch more {}s: whether that matters is not sure yet.",
            what(finding),
            rate(finding),
            settled(finding),
            finding.counted(),
        ),
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
    if is_sure(finding) {
        return drifts(finding);
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
        "{}, {} in the middle, {} by {}/{}, less than would matter ({}; {}/{} would), {}.",
        what(finding),
        size(finding.typical.footprint()),
        if slope > 0.0 { "rises" } else { "falls" },
        size(slope.abs()),
        finding.unit,
        interval(finding),
        size(finding.trend.threshold),
        finding.unit,
        settled(finding),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::judge::judge;
    use crate::report::model::{Place, Sample, Size, Store};

    /// What is said of a process with this RSS in MB, by round.
    fn said(rss: impl Fn(f64) -> f64) -> (Verdict, String) {
        let mut store = Store::default();
        for round in 0..20 {
            let mut sample = Sample::of_round(round);
            sample.sizes[Size::Rss] = rss(round as f64) * 1024.0 * 1024.0;
            store.add(&sample, &Place::ANY);
        }
        let finding = judge(&store.finish().0[0]).unwrap().0;
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
        assert!(
            text.starts_with("RSS changes by +0.40 MB/round (95 %: +0.3"),
            "{text}"
        );
    }
}
