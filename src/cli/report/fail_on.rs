//! The conditions of `--fail-on`, under which the report exits with status 1.

use std::str::FromStr;

use clap::ValueEnum;

use super::analyse::stats::Estimate;
use super::analyse::{Finding, Verdict};
use super::explain::{rate_per, reaches_limit};
use super::model::Unit;
use super::units::{duration, duration_argument, size, size_argument, Amount};

#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    GrowthPerRound(f64),
    GrowthPerHour(f64),
    Peak(f64),
    /// Seconds until the memory limit is reached.
    Limit(f64),
    Verdict(Verdict),
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, rest) = text.split_once(':').unwrap_or_default();
        match (kind, rest.rsplit_once('/')) {
            ("growth", Some((size, "round"))) => size_argument(size).map(Self::GrowthPerRound),
            ("growth", Some((size, "hour" | "h"))) => size_argument(size).map(Self::GrowthPerHour),
            ("limit", None) => duration_argument(rest).map(Self::Limit),
            ("peak", None) => size_argument(rest).map(Self::Peak),
            ("verdict", None) => verdict_argument(rest).map(Self::Verdict),
            _ => Err(format!(
                "`{text}` is not one of growth:SIZE/round, growth:SIZE/hour, peak:SIZE, limit:TIME, \
                 verdict:NAME"
            )),
        }
    }
}

/// A verdict by its name, with spaces, hyphens or underscores.
fn verdict_argument(text: &str) -> Result<Verdict, String> {
    let verdict = Verdict::from_str(&text.replace([' ', '_'], "-"), false);
    let names: Vec<&str> = Verdict::all().map(Verdict::name).collect();
    let names = names.join(", ");
    verdict.map_err(|_| format!("`{text}` is not a verdict; the verdicts are {names}"))
}

impl Condition {
    /// Describes how the process meets the condition, if it does.
    pub fn failure(&self, finding: &Finding) -> Option<String> {
        let slope = finding.lasting_slope();
        match *self {
            Condition::GrowthPerRound(limit) => {
                // The visits of a stage without rounds count as rounds, minutes do not.
                let slope = slope.filter(|_| finding.unit != Unit::Minute);
                grows_faster(slope?, finding.unit.name(), limit)
            }
            Condition::GrowthPerHour(limit) => {
                grows_faster(slope.and(finding.hourly)?, "hour", limit)
            }
            Condition::Peak(limit) => {
                let peak = finding.process.peak_rss;
                (peak > limit).then(|| format!("peaks at {}, above {}", size(peak), size(limit)))
            }
            Condition::Limit(seconds) => {
                let estimate = finding.time_to_limit()?;
                let (text, wanted) = (reaches_limit(finding.process, &estimate), duration(seconds));
                (estimate.seconds < seconds).then(|| match estimate.left_bytes > 0.0 {
                    true => format!("{text}, less than {wanted}"),
                    false => text,
                })
            }
            Condition::Verdict(verdict) => {
                (finding.verdict == verdict).then(|| format!("has the verdict {}", verdict.name()))
            }
        }
    }
}

/// The whole interval must lie above the limit.
fn grows_faster(slope: Estimate, unit: &str, limit: f64) -> Option<String> {
    let (rate, wanted) = (rate_per(&slope, unit, Amount::Size), size(limit));
    (slope.low > limit)
        .then(|| format!("grows by {rate}: the whole interval is above {wanted}/{unit}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::{finding_of, sample, sizes};
    use crate::report::explain::evidence;
    use crate::report::model::Size;
    use crate::report::output::print::overview;
    use crate::report::units::MB;
    use flarena_shared::marker::Marker;

    /// A process with this RSS in MB by round, and this many seconds per round.
    fn report(rounds: usize, seconds: f64, rss: impl Fn(f64) -> f64) -> Finding<'static> {
        let marker = |round: usize| Marker {
            t: Some(seconds * round as f64),
            ..sample(round, sizes(&[(Size::Rss, rss(round as f64))]))
        };
        finding_of((0..rounds).map(marker))
    }

    fn failure(condition: &str, finding: &Finding) -> Option<String> {
        condition.parse::<Condition>().unwrap().failure(finding)
    }

    #[test]
    fn growth_conditions_use_the_printed_interval_even_if_the_verdict_is_flat() {
        let flat = report(20, 30.0, |round| 220.0 + 0.28 * round);
        assert_eq!(flat.verdict, Verdict::Flat);
        let text = evidence(&flat);
        let part = "(95 % interval: +0.28 to +0.28 MB) excludes growth above 0.28 MB/round; 0.35 MB/round or more would matter.";
        assert!(text.contains(part), "{text}");
        let expected = "grows by 0.28 MB/round (95 % interval: 0.28 to 0.28 MB): the whole interval is above 51 KB/round";
        assert_eq!(
            failure("growth:0.05MB/round", &flat).as_deref(),
            Some(expected)
        );
        assert_eq!(failure("growth:0.29MB/round", &flat), None);
        assert!(failure("growth:20MB/hour", &flat).is_some());
        assert_eq!(failure("growth:35MB/hour", &flat), None);
    }

    #[test]
    fn noise_and_a_warm_up_meet_no_growth_condition() {
        let noisy = report(20, 30.0, |round| 220.0 + (round * 7.0) % 5.0);
        let text = evidence(&noisy);
        assert!(text.contains("RSS is about"), "{text}");
        let climbing = report(6, 30.0, |round| 220.0 + 50.0 * round);
        assert_eq!(climbing.verdict, Verdict::WarmingUp);
        for finding in [noisy, climbing] {
            assert_eq!(failure("growth:0.01MB/round", &finding), None);
        }
    }

    #[test]
    fn a_rate_per_minute_meets_no_condition_per_round() {
        let marker = |minute: usize| Marker {
            round: None,
            stage: "periodic".into(),
            t: Some(60.0 * minute as f64),
            ..sample(minute, sizes(&[(Size::Rss, 220.0 + 10.0 * minute as f64)]))
        };
        let grows = finding_of((0..40).map(marker));
        assert_eq!(grows.unit, Unit::Minute);
        assert_eq!(failure("growth:1MB/round", &grows), None);
        assert!(failure("growth:1MB/hour", &grows).is_some());
        let table = overview(&[grows]).text();
        assert!(table.contains(" +10.0 MB/minute\n"), "{table}");
    }

    #[test]
    fn less_than_a_minute_gives_no_hourly_rate() {
        let grows = |seconds| report(20, seconds, |round| 220.0 + 100.0 * round);
        let (brief, long) = (grows(0.05), grows(30.0));
        let text = evidence(&brief);
        assert!(!text.contains("/h ("), "{text}");
        assert_eq!(failure("growth:1MB/hour", &brief), None);
        assert!(failure("growth:1MB/round", &brief).is_some());
        let text = evidence(&long);
        assert!(text.contains("GB/h ("), "{text}");
        assert!(failure("growth:1MB/hour", &long).is_some());
    }

    #[test]
    fn conditions_parse_as_documented() {
        use Condition::{GrowthPerHour, GrowthPerRound, Limit, Peak};
        let five = 5.0 * MB;
        let valid = [
            ("growth:5MB/round", GrowthPerRound(five)),
            ("growth:5 MiB/hour", GrowthPerHour(five)),
            ("peak:5M", Peak(five)),
            ("limit:24h", Limit(86400.0)),
        ];
        for (text, condition) in valid {
            assert_eq!(text.parse(), Ok(condition), "{text}");
        }
        for verdict in Verdict::all() {
            for name in [verdict.name().to_owned(), verdict.name().replace(' ', "-")] {
                let parsed = format!("verdict:{name}").parse();
                assert_eq!(parsed, Ok(Condition::Verdict(verdict)), "{name}");
            }
        }
        let invalid = ["", "growth", "growth:5MB", "growth:x/round", "peak:1/round"];
        for text in invalid.into_iter().chain(["limit:soon", "verdict:bad"]) {
            assert!(text.parse::<Condition>().is_err(), "{text}");
        }
    }
}
