//! `--fail-on`: the conditions under which a report fails a CI job.

use std::str::FromStr;

use super::analysis::ProcessReport;
use super::finding::Verdict;
use super::units::{change, duration, parse_duration, parse_size, size};

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
                let name = rest.replace(['-', '_'], " ");
                let named = |v: &Verdict| v.name().replace('-', " ") == name;
                Verdict::ALL
                    .into_iter()
                    .find(named)
                    .map(Condition::Verdict)
                    .ok_or_else(|| {
                        let names: Vec<&str> = Verdict::ALL.iter().map(|v| v.name()).collect();
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
        let growth = report.growth().map_or(0.0, |slope| slope.per_x);
        match *self {
            Condition::GrowthPerRound(limit) => (growth > limit).then(|| {
                let unit = report.finding.unit;
                format!(
                    "grows by {}/{unit}, more than {}",
                    change(growth),
                    size(limit)
                )
            }),
            Condition::GrowthPerHour(limit) => {
                let hour = growth * 3600.0 / report.finding.seconds_per_unit;
                let text = || format!("grows by {}/hour, more than {}", change(hour), size(limit));
                (hour > limit).then(text)
            }
            Condition::Peak(limit) => (report.peak > limit)
                .then(|| format!("peaks at {}, above {}", size(report.peak), size(limit))),
            Condition::Limit(seconds) => {
                let reach = report
                    .reach
                    .as_ref()
                    .filter(|reach| reach.seconds < seconds)?;
                let (limit, after) = (size(reach.limit), duration(reach.seconds));
                let asked = duration(seconds);
                Some(format!(
                    "reaches its {limit} in about {after}, less than {asked}"
                ))
            }
            Condition::Verdict(verdict) => (report.finding.verdict == verdict)
                .then(|| format!("has the verdict {}", verdict.name())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_as_documented() {
        let five = 5.0 * 1024.0 * 1024.0;
        let right = [
            ("growth:5MB/round", Condition::GrowthPerRound(five)),
            ("growth:5 MiB/hour", Condition::GrowthPerHour(five)),
            ("peak:5M", Condition::Peak(five)),
            ("limit:24h", Condition::Limit(86400.0)),
            (
                "verdict:live-growth",
                Condition::Verdict(Verdict::LiveGrowth),
            ),
            (
                "verdict:file-backed",
                Condition::Verdict(Verdict::FileBacked),
            ),
        ];
        for (text, condition) in right {
            assert_eq!(text.parse(), Ok(condition), "{text}");
        }
        for wrong in [
            "",
            "growth",
            "growth:5MB",
            "growth:x/round",
            "peak:1/round",
            "limit:soon",
            "verdict:bad",
        ] {
            assert!(wrong.parse::<Condition>().is_err(), "{wrong}");
        }
    }
}
