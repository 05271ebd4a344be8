//! When a process that grows reaches the memory limit of its control group.

use crate::report::analyse::finding::Finding;
use crate::report::model::Process;
use crate::report::units::{duration, size};

pub struct Reach {
    pub limit: f64,
    /// Bytes below it at the last markers, of the whole group.
    pub left: f64,
    /// Seconds until then at the slope, and at the bounds of its interval.
    pub seconds: f64,
    pub earliest: f64,
    pub latest: f64,
}

impl Reach {
    /// Where a limit, a slope and a clock are known.
    pub fn of(process: &Process, finding: &Finding) -> Option<Reach> {
        if !finding.verdict.is_growth() || process.limit.is_nan() {
            return None;
        }
        let left = (process.limit - process.used()).max(0.0);
        let slope = finding.trend.slope;
        let after = |per_x: f64| left / per_x * finding.seconds_per_unit;
        let reach = Reach {
            limit: process.limit,
            left,
            seconds: after(slope.per_x),
            earliest: after(slope.high),
            latest: after(slope.low),
        };
        reach.seconds.is_finite().then_some(reach)
    }

    /// `At this rate it reaches its 8.00 GB in about 9.0 h (7.5 h to 11.2 h).`
    pub fn sentence(&self) -> String {
        format!(
            "At this rate it reaches its {} in about {} ({} to {}).",
            size(self.limit),
            duration(self.seconds),
            duration(self.earliest),
            duration(self.latest)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::{judged, sample, sizes};
    use crate::report::model::{Sample, Size};
    use crate::report::units::MB;

    /// Of a process that gains so many MB a round.
    fn reach(limit: f64, per_round: f64) -> Option<Reach> {
        let marker = |round: usize| {
            let rss = 1024.0 + per_round * round as f64;
            // Somebody else holds a gigabyte, and the page cache is no obstacle.
            let (group, cache) = (rss + 3072.0, 2048.0);
            let known = [
                (Size::Rss, rss),
                (Size::Cgroup, group),
                (Size::CgroupReclaimable, cache),
            ];
            Sample {
                t: Some(600.0 * round as f64),
                limit: limit * MB,
                ..sample(round, sizes(&known))
            }
        };
        let (process, finding) = judged((0..24).map(marker));
        Reach::of(&process, &finding)
    }

    #[test]
    fn the_time_to_the_limit_counts_what_the_group_cannot_give_back() {
        let found = reach(8192.0, 100.0).unwrap();
        let left = 8192.0 - 2048.0 - 23.0 * 100.0;
        assert!((found.seconds / (left / 100.0 * 600.0) - 1.0).abs() < 0.01);
        assert!(found.earliest <= found.seconds && found.seconds <= found.latest);
        let said = found.sentence();
        assert!(
            said.starts_with("At this rate it reaches its 8.00 GB in about 6.4 h ("),
            "{said}"
        );
    }

    #[test]
    fn without_growth_or_without_a_limit_nothing_is_reached() {
        assert!(reach(8192.0, 0.0).is_none());
        assert!(reach(f64::NAN, 100.0).is_none());
    }
}
