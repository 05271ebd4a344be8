//! Estimates when a growing process reaches the memory limit of its cgroup.

use super::finding::Finding;
use crate::report::model::Process;

pub struct TimeToLimit {
    pub limit: f64,
    /// Bytes that were left below the limit at the last markers. All processes of the cgroup count.
    pub left: f64,
    /// Seconds until the limit, at the slope and at the bounds of its interval.
    pub seconds: f64,
    pub earliest: f64,
    pub latest: f64,
}

impl TimeToLimit {
    /// `None` without growth, a limit or marker times.
    pub fn estimate(process: &Process, finding: &Finding) -> Option<TimeToLimit> {
        if !finding.verdict.is_growth() || process.cgroup_limit.is_nan() {
            return None;
        }
        let (_, last) = process.last_visit()?;
        let left = (process.cgroup_limit - last.sizes.unreclaimable()).max(0.0);
        let per_second = finding.per_second(finding.trend.slope)?;
        Some(TimeToLimit {
            limit: process.cgroup_limit,
            left,
            seconds: left / per_second.per_x,
            earliest: left / per_second.high,
            latest: match per_second.low {
                low if low > 0.0 => left / low,
                _ => f64::INFINITY,
            },
        })
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::report::analyse::fixtures::{process_and_finding, sample, sizes};
    use crate::report::model::{Sample, Size};
    use crate::report::units::MB;

    /// The estimate for a process that grows by `per_round` MB, with a limit in MB.
    pub fn estimate(limit: f64, per_round: f64) -> Option<TimeToLimit> {
        let marker = |round: usize| {
            let rss = 1024.0 + per_round * round as f64;
            // Other processes of the cgroup use 1 GB, and 2 GB are page cache.
            let (group, cache) = (rss + 3072.0, 2048.0);
            let known = [
                (Size::Rss, rss),
                (Size::Cgroup, group),
                (Size::CgroupReclaimable, cache),
            ];
            Sample {
                t: Some(600.0 * round as f64),
                cgroup_limit: limit * MB,
                ..sample(round, sizes(&known))
            }
        };
        let (process, finding) = process_and_finding((0..24).map(marker));
        TimeToLimit::estimate(&process, &finding)
    }

    #[test]
    fn the_estimate_counts_the_cgroup_without_reclaimable_memory() {
        let estimate = estimate(8192.0, 100.0).unwrap();
        let left = 8192.0 - 2048.0 - 23.0 * 100.0;
        assert!((estimate.seconds / (left / 100.0 * 600.0) - 1.0).abs() < 0.01);
        assert!(estimate.earliest <= estimate.seconds && estimate.seconds <= estimate.latest);
    }

    #[test]
    fn without_growth_or_a_limit_there_is_no_estimate() {
        assert!(estimate(8192.0, 0.0).is_none());
        assert!(estimate(f64::NAN, 100.0).is_none());
    }
}
