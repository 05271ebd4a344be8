//! `--fail-on`: the conditions under which a report fails a CI job.

use std::str::FromStr;

use clap::ValueEnum;

use crate::report::analyse::finding::Verdict;
use crate::report::analyse::stats::Slope;
use crate::report::analyse::ProcessReport;
use crate::report::units::{change, duration, parse_duration, parse_size, size};

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
        let wrong = || {
            format!(
                "`{text}` is none of growth:SIZE/round, growth:SIZE/hour, peak:SIZE, limit:TIME, \
                 verdict:NAME"
            )
        };
        let (kind, rest) = text.split_once(':').ok_or_else(wrong)?;
        let bytes = |text: &str| {
            parse_size(text).ok_or_else(|| format!("`{text}` is no size, such as 64M or 8G"))
        };
        let time = |text: &str| {
            parse_duration(text).ok_or_else(|| format!("`{text}` is no time, such as 30m or 24h"))
        };
        match (kind, rest.rsplit_once('/')) {
            ("growth", Some((size, "round"))) => Ok(Condition::GrowthPerRound(bytes(size)?)),
            ("growth", Some((size, "hour" | "h"))) => Ok(Condition::GrowthPerHour(bytes(size)?)),
            ("limit", None) => Ok(Condition::Limit(time(rest)?)),
            ("peak", None) => Ok(Condition::Peak(bytes(rest)?)),
            ("verdict", None) => {
                let named = Verdict::from_str(&rest.replace([' ', '_'], "-"), false);
                named.map(Condition::Verdict).map_err(|_| {
                    let names: Vec<&str> = Verdict::all().map(Verdict::name).collect();
                    format!("`{rest}` is no verdict; there are {}", names.join(", "))
                })
            }
            _ => Err(wrong()),
        }
    }
}

impl Condition {
    /// What this process did to meet the condition.
    pub fn met_by(&self, report: &ProcessReport) -> Option<String> {
        let finding = &report.finding;
        match *self {
            Condition::GrowthPerRound(limit) => grows_faster(finding.rise()?, finding.unit, limit),
            Condition::GrowthPerHour(limit) => {
                let Slope { per_x, low, high } = finding.rise()?;
                let hourly = Slope {
                    per_x: finding.per_hour(per_x)?,
                    low: finding.per_hour(low)?,
                    high: finding.per_hour(high)?,
                };
                grows_faster(hourly, "hour", limit)
            }
            Condition::Peak(limit) => (report.process.hwm > limit).then(|| {
                format!(
                    "peaks at {}, above {}",
                    size(report.process.hwm),
                    size(limit)
                )
            }),
            Condition::Limit(seconds) => {
                let reach = report.reach.as_ref()?;
                let (limit, after) = (size(reach.limit), duration(reach.seconds));
                let asked = duration(seconds);
                (reach.seconds < seconds)
                    .then(|| format!("reaches its {limit} in about {after}, less than {asked}"))
            }
            Condition::Verdict(verdict) => (report.finding.verdict == verdict)
                .then(|| format!("has the verdict {}", verdict.name())),
        }
    }
}

/// The whole interval must lie above the limit, as it must for a verdict.
fn grows_faster(Slope { per_x, low, high }: Slope, unit: &str, limit: f64) -> Option<String> {
    let (low_end, high_end) = (change(low), change(high));
    (low > limit).then(|| {
        format!(
            "grows by {}/{unit} (95 %: {low_end} to {high_end}), more than {}",
            change(per_x),
            size(limit)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::analyse;
    use crate::report::analyse::fixtures::{processes, sample, sizes};
    use crate::report::model::{Sample, Size};
    use crate::report::units::MB;

    /// A process of so many rounds, one each so many seconds; RSS in MB.
    fn report(rounds: usize, seconds: f64, rss: impl Fn(f64) -> f64) -> ProcessReport {
        let marker = |round: usize| Sample {
            t: Some(seconds * round as f64),
            ..sample(round, sizes(&[(Size::Rss, rss(round as f64))]))
        };
        analyse(processes((0..rounds).map(marker))).remove(0)
    }

    fn is_met(condition: &str, report: &ProcessReport) -> Option<String> {
        condition.parse::<Condition>().unwrap().met_by(report)
    }

    /// Seen: a printed interval of +0.22 to +0.28 MB, and growth:0.05MB/round was not met.
    #[test]
    fn growth_is_what_the_printed_interval_says_also_where_the_verdict_is_flat() {
        let flat = report(20, 30.0, |round| 220.0 + 0.28 * round);
        assert_eq!(flat.finding.verdict, Verdict::Flat);
        let said = "rises by 0.28 MB/round, less than would matter (95 %: +0.24 MB to +0.28 MB";
        assert!(flat.evidence.contains(said), "{}", flat.evidence);
        let met = "grows by +0.28 MB/round (95 %: +0.24 MB to +0.28 MB), more than 0.05 MB";
        assert_eq!(is_met("growth:0.05MB/round", &flat).as_deref(), Some(met));
        assert_eq!(is_met("growth:0.25MB/round", &flat), None);
        assert!(is_met("growth:20MB/hour", &flat).is_some());
        assert_eq!(is_met("growth:30MB/hour", &flat), None);
    }

    #[test]
    fn a_level_with_noise_and_a_warm_up_meet_no_growth_condition() {
        let noisy = report(20, 30.0, |round| 220.0 + (round * 7.0) % 5.0);
        let said = &noisy.evidence;
        assert!(said.contains("RSS stays at"), "{said}");
        let climbing = report(6, 30.0, |round| 220.0 + 50.0 * round);
        assert_eq!(climbing.finding.verdict, Verdict::WarmingUp);
        for report in [noisy, climbing] {
            assert_eq!(is_met("growth:0.01MB/round", &report), None);
        }
    }

    /// Seen: +6179.87 GB/h for a job of less than a second.
    #[test]
    fn less_than_a_minute_gives_no_rate_per_hour() {
        let grows = |seconds| report(20, seconds, |round| 220.0 + 100.0 * round);
        let (brief, long) = (grows(0.05), grows(30.0));
        assert!(!brief.evidence.contains("/h,"), "{}", brief.evidence);
        assert_eq!(is_met("growth:1MB/hour", &brief), None);
        assert!(is_met("growth:1MB/round", &brief).is_some());
        assert!(long.evidence.contains("GB/h,"), "{}", long.evidence);
        assert!(is_met("growth:1MB/hour", &long).is_some());
    }

    #[test]
    fn conditions_are_read_as_documented() {
        use Condition::{GrowthPerHour, GrowthPerRound, Limit, Peak};
        let five = 5.0 * MB;
        let right = [
            ("growth:5MB/round", GrowthPerRound(five)),
            ("growth:5 MiB/hour", GrowthPerHour(five)),
            ("peak:5M", Peak(five)),
            ("limit:24h", Limit(86400.0)),
        ];
        for (text, condition) in right {
            assert_eq!(text.parse(), Ok(condition), "{text}");
        }
        for verdict in Verdict::all() {
            for name in [verdict.name().to_owned(), verdict.name().replace(' ', "-")] {
                let read = format!("verdict:{name}").parse();
                assert_eq!(read, Ok(Condition::Verdict(verdict)), "{name}");
            }
        }
        let wrong = ["", "growth", "growth:5MB", "growth:x/round", "peak:1/round"];
        for wrong in wrong.into_iter().chain(["limit:soon", "verdict:bad"]) {
            assert!(wrong.parse::<Condition>().is_err(), "{wrong}");
        }
    }
}
