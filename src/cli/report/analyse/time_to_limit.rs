//! Estimates when a growing process reaches a memory limit. The peak inside a round counts: that is where the limit is hit.

use serde::Serialize;

use super::between_stages::highest;
use super::finding::Finding;
use super::stats::{median, Estimate, Trend};
use crate::report::model::{Point, Process, Series, Size};

/// So many of the latest rounds show the peak of a round. Single ones are noisy.
const RECENT_ROUNDS: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum LimitOf {
    /// The control group with the least memory left.
    #[serde(rename = "cgroup")]
    Group,
    #[serde(rename = "FLARENA_MEMORY_LIMIT")]
    Setting,
    #[serde(rename = "--limit")]
    Option,
    #[serde(rename = "machine")]
    Machine,
}

#[derive(Serialize)]
pub struct TimeToLimit {
    pub limit_bytes: f64,
    pub limit_of: LimitOf,
    /// Growth of the control group per unit of the finding, if it is certainly faster than that of the process.
    #[serde(rename = "growth_of_group_bytes_per_round")]
    pub growth_of_group: Option<f64>,
    /// Bytes that are left at the peak of a round. All processes of a control group count for its limit.
    pub left_bytes: f64,
    /// Seconds until the limit, and their bounds. The latest time is 0 if the process is at the limit, and counts pages of
    /// files that the process has mapped as free: the kernel drops most of them before it kills.
    pub seconds: f64,
    #[serde(rename = "low_95")]
    pub earliest: f64,
    #[serde(rename = "high_95")]
    pub latest: f64,
}

impl Finding<'_> {
    /// `None` without growth that counts, a limit or marker times.
    pub fn time_to_limit(&self) -> Option<TimeToLimit> {
        let pace = self.pace.as_ref()?.seconds;
        let (limit, limit_of) = limit_of(self.process, self.limit)?;
        let own = self.growth_to_limit();
        let counts = limit_of == LimitOf::Group && (own.is_some() || self.may_run);
        let group = counts.then(|| growth_of_group(self.series)).flatten();
        let group = group.filter(|group| own.is_none_or(|own| group.value > own.high));
        let growth = group.or(own)?;
        let peaks = recent_peaks(self, growth, limit_of)?;
        let (_, last) = self.process.last_visit()?;
        let now = used(last, limit_of);
        let left = |peak: f64| (limit - peak.max(now)).max(0.0);
        let highest = peaks.iter().copied().fold(now, f64::max);
        let lowest = peaks.iter().copied().fold(f64::INFINITY, f64::min);
        let mapped = mapped(last, limit_of);
        let most_left = (limit - lowest.max(now) + mapped).max(0.0);
        let typical = left(median(&peaks));
        let is_at_limit = most_left <= 0.0 || typical <= 0.0 && mapped <= 0.0;
        Some(TimeToLimit {
            limit_bytes: limit,
            limit_of,
            growth_of_group: group.map(|group| group.value),
            left_bytes: typical,
            seconds: typical / growth.value * pace.value,
            // The limit is hit at the peak of a round, which may come a round before or after that moment.
            earliest: ((left(highest) / growth.high - 1.0) * pace.low).max(0.0),
            latest: match () {
                () if is_at_limit => 0.0,
                () if growth.low > 0.0 => (most_left / growth.low + 1.0) * pace.high,
                () => f64::INFINITY,
            },
        })
    }
}

/// `given` is the limit of `--limit`.
fn limit_of(process: &Process, given: Option<f64>) -> Option<(f64, LimitOf)> {
    let mut limits = [
        (process.cgroup_limit, LimitOf::Group),
        (process.memory_limit, LimitOf::Setting),
        (given, LimitOf::Option),
        (process.host_memory, LimitOf::Machine),
    ]
    .into_iter();
    limits.find_map(|(limit, of)| Some((limit?, of)))
}

/// The part of the limit that is in use: of a control group by all its processes, else by the process.
fn used(point: &Point, limit_of: LimitOf) -> f64 {
    match limit_of {
        LimitOf::Group => point.sizes.unreclaimable(),
        LimitOf::Setting | LimitOf::Option | LimitOf::Machine => point.sizes.footprint(),
    }
}

/// The part of `used` that the kernel drops before the limit is hit. It knows no other limits.
fn mapped(point: &Point, limit_of: LimitOf) -> f64 {
    let known = |size| point.sizes.get(size).unwrap_or(0.0);
    match limit_of {
        LimitOf::Group => known(Size::File).min(known(Size::CgroupReclaimable)),
        LimitOf::Machine => known(Size::File),
        LimitOf::Setting | LimitOf::Option => 0.0,
    }
}

/// The growth of the memory of the control group that the kernel cannot drop. `None` if none is certain.
fn growth_of_group(series: &Series) -> Option<Estimate> {
    let points = series.points().iter();
    let held = points.map(|point| point.sizes.held_by_group());
    let held: Vec<f64> = held.collect::<Option<_>>()?;
    let trend = Trend::of(&series.positions(), &held, median(&held));
    trend.is_growing().then_some(trend.slope)
}

/// The use at the peaks of the latest rounds. Each is raised by the growth until now. The kernel counts the highest RSS of
/// the process; where it rose within a round, the excess over each marker of the round counts beside the use there.
fn recent_peaks(finding: &Finding, growth: Estimate, limit_of: LimitOf) -> Option<Vec<f64>> {
    let series = end_of_round(finding)?;
    let points = series.points();
    let rises = |place: usize| {
        let before = points[place.checked_sub(1)?].highest?;
        points[place].highest.filter(|highest| *highest > before)
    };
    let at_marker = |place: usize, marker: &Point| {
        let peak = rises(place).map_or(marker.recent_peak, |rise| rise.max(marker.recent_peak));
        used(marker, limit_of) + (peak - marker.sizes.rss()).max(0.0)
    };
    let positions = series.positions();
    let now = positions.last()?;
    let highest = highest(finding.process, series, at_marker);
    let raised = |((peak, _), x): (&(f64, &str), &f64)| peak + growth.value * (now - x);
    let mut peaks: Vec<f64> = highest.iter().zip(&positions).map(raised).collect();
    Some(peaks.split_off(peaks.len().saturating_sub(RECENT_ROUNDS)))
}

/// The last stage of a round, of those that occur as often as the one that decides.
fn end_of_round<'a>(finding: &Finding<'a>) -> Option<&'a Series> {
    let (unit, length) = (finding.unit, finding.series.len());
    let stages = finding.process.stages.iter();
    let as_often = stages.filter(|series| series.unit() == unit && series.len() >= length);
    as_often.max_by_key(|series| series.points().last().map(|point| point.order))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::report::analyse::findings;
    use crate::report::analyse::fixtures::{bytes, finding_of, processes, sample, sizes};
    use crate::report::model::Size;
    use crate::report::units::MB;
    use flarena_shared::marker::Marker;

    fn marker(round: usize, limit: f64, per_round: f64) -> Marker {
        let rss = 1024.0 + per_round * round as f64;
        // Other processes of the cgroup use 1 GB, and 2 GB are page cache.
        let (group, cache) = (rss + 3072.0, 2048.0);
        let known = [
            (Size::Rss, rss),
            (Size::Cgroup, group),
            (Size::CgroupReclaimable, cache),
        ];
        Marker {
            t: Some(600.0 * round as f64),
            cgroup_limit_bytes: bytes(limit),
            ..sample(round, sizes(&known))
        }
    }

    /// The estimate after 24 rounds of 10 minutes.
    fn estimate_of(marker: impl Fn(usize) -> Marker, given: Option<f64>) -> Option<TimeToLimit> {
        let processes = processes((0..24).map(marker)).leak();
        findings(processes, given, |_| true)[0].time_to_limit()
    }

    /// The estimate for a process that grows by `per_round` MB, with a limit in MB.
    pub fn estimate(limit: f64, per_round: f64) -> Option<TimeToLimit> {
        estimate_of(|round| marker(round, limit, per_round), None)
    }

    #[test]
    fn the_estimate_counts_the_cgroup_without_reclaimable_memory() {
        let estimate = estimate(8192.0, 100.0).unwrap();
        let left = 8192.0 - 2048.0 - 23.0 * 100.0;
        assert!((estimate.seconds / (left / 100.0 * 600.0) - 1.0).abs() < 0.01);
        assert!(estimate.earliest <= estimate.seconds && estimate.seconds <= estimate.latest);
    }

    #[test]
    fn growth_of_the_rest_of_the_control_group_brings_the_limit_nearer_also_without_own_growth() {
        let estimate = |own: f64, others: f64, cache: f64| {
            let marker = |round: usize| {
                let (x, y) = (round as f64, 30.0 * (round % 3) as f64);
                let (rss, rest) = (400.0 + own * x, 600.0 + others * x);
                let sizes = sizes(&[
                    (Size::Rss, rss),
                    (Size::File, 30.0),
                    (Size::Cgroup, rss + rest + 50.0 + y + cache * x),
                    (Size::CgroupReclaimable, 80.0 + y + cache * x),
                ]);
                Marker {
                    t: Some(60.0 * x),
                    cgroup_limit_bytes: bytes(2000.0),
                    ..sample(round, sizes)
                }
            };
            estimate_of(marker, None)
        };
        let minutes = |own, others| estimate(own, others, 0.0).unwrap().seconds / 60.0;
        let left = |growth| (1000.0 - 23.0 * growth) / growth;
        for (own, others) in [(5.0, 15.0), (0.0, 25.0), (20.0, 0.0)] {
            let (found, expected) = (minutes(own, others), left(own + others));
            assert!((found / expected - 1.0).abs() < 0.05, "{found} {expected}");
        }
        let rate = estimate(5.0, 15.0, 0.0).unwrap().growth_of_group.unwrap();
        assert!((rate / MB - 20.0).abs() < 0.1, "{rate}");
        assert_eq!(estimate(20.0, 0.0, 0.0).unwrap().growth_of_group, None);
        assert!(estimate(0.0, 0.0, 20.0).is_none(), "page cache");
        // A process that takes what another one returns.
        assert!(estimate(-10.0, 10.0, 0.0).is_none());
    }

    #[test]
    fn growth_in_swap_or_of_pages_of_files_names_no_time_and_swap_takes_none_of_the_limit() {
        let grown = |size: Size, resident: f64| {
            move |round: usize| {
                let x = round as f64;
                let mut sizes = sizes(&[
                    (Size::Rss, 300.0 + resident * x),
                    (Size::Anon, 300.0 + resident.min(0.0) * x),
                    (Size::Live, 200.0),
                    (Size::Cgroup, 500.0 + resident * x),
                    (Size::Swap, 0.0),
                    (Size::File, 0.0),
                    (Size::Shmem, 0.0),
                ]);
                sizes.set(size, Some(10.0 * x * MB));
                Marker {
                    t: Some(600.0 * x),
                    cgroup_limit_bytes: bytes(1000.0),
                    ..sample(round, sizes)
                }
            }
        };
        assert!(estimate_of(grown(Size::Swap, -10.0), None).is_none());
        assert!(estimate_of(grown(Size::File, 10.0), None).is_none());
        assert!(estimate_of(grown(Size::Shmem, 10.0), None).is_some());
        let peaks = |round: usize| Marker {
            peak_bytes: bytes(320.0 + 20.0 * round as f64),
            ..grown(Size::File, 10.0)(round)
        };
        let of_peaks = estimate_of(peaks, None).unwrap();
        assert!((of_peaks.seconds / of_peaks.left_bytes * 10.0 * MB / 600.0 - 1.0).abs() < 0.05);
        let swapped = |round: usize| Marker {
            swap_bytes: bytes(6000.0),
            ..marker(round, 8192.0, 100.0)
        };
        let left = |found: Option<TimeToLimit>| found.unwrap().left_bytes;
        let [with, without] = [estimate_of(swapped, None), estimate(8192.0, 100.0)].map(left);
        assert!((with - without).abs() < MB, "{with} {without}");
    }

    #[test]
    fn the_peak_inside_a_round_counts() {
        let with_peaks = |round: usize| Marker {
            hwm_bytes: bytes(1024.0 + 100.0 * round as f64 + 700.0),
            ..marker(round, 8192.0, 100.0)
        };
        let [with, without] = [&with_peaks as &dyn Fn(usize) -> _, &|round| {
            marker(round, 8192.0, 100.0)
        }]
        .map(|marker| estimate_of(marker, None).unwrap().left_bytes / MB);
        assert!((without - with - 700.0).abs() < 1.0, "{with} {without}");
    }

    #[test]
    fn a_high_peak_at_the_start_is_not_that_of_each_round() {
        let import = |round: usize| Marker {
            hwm_bytes: bytes(6000.0),
            ..marker(round, 8192.0, 100.0)
        };
        let left = estimate_of(import, None).unwrap().left_bytes;
        assert_eq!(left, estimate(8192.0, 100.0).unwrap().left_bytes);
    }

    #[test]
    fn a_peak_that_the_library_saw_since_the_marker_before_counts() {
        let peak = |round: usize| Marker {
            hwm_bytes: bytes(6000.0),
            peak_bytes: bytes(1024.0 + 100.0 * round as f64 + 300.0),
            ..marker(round, 8192.0, 100.0)
        };
        let left = estimate_of(peak, None).unwrap().left_bytes;
        let without = estimate(8192.0, 100.0).unwrap().left_bytes;
        assert!(
            ((without - left) / MB - 300.0).abs() < 1.0,
            "{left} {without}"
        );
    }

    #[test]
    fn the_peak_at_the_end_of_the_last_round_counts_whichever_stage_decides() {
        let left = |exact: &str| {
            let marker = |seq: usize| {
                let stage = ["train", "send"][seq % 2];
                let noise = if stage == exact {
                    0.0
                } else {
                    (seq * 7 % 5) as f64
                };
                let rss = 1024.0 + 50.0 * seq as f64 + noise;
                let known = [(Size::Rss, rss), (Size::Cgroup, rss)];
                Marker {
                    stage: stage.into(),
                    round: Some(seq as i64 / 2),
                    cgroup_limit_bytes: bytes(8192.0),
                    peak_bytes: bytes(rss + 500.0).filter(|_| stage == "send"),
                    ..sample(seq, sizes(&known))
                }
            };
            let limit = finding_of((0..48).map(marker)).time_to_limit();
            limit.unwrap().left_bytes / MB
        };
        let expected = 8192.0 - (1024.0 + 50.0 * 47.0 + 500.0);
        for stage in ["train", "send"] {
            assert!(
                (left(stage) - expected).abs() < 10.0,
                "{} {expected}",
                left(stage)
            );
        }
    }

    #[test]
    fn without_a_group_limit_the_setting_the_option_and_the_machine_count() {
        let limit = |setting: Option<u64>, given: Option<f64>| {
            let marker = |round: usize| Marker {
                memory_limit_bytes: setting,
                host_memory_bytes: bytes(65536.0),
                ..marker(round, f64::NAN, 100.0)
            };
            let estimate = estimate_of(marker, given).unwrap();
            (
                estimate.limit_of,
                estimate.limit_bytes / MB,
                (estimate.left_bytes / MB).round(),
            )
        };
        let (setting, option) = (bytes(4096.0), Some(5000.0 * MB));
        assert_eq!(limit(setting, option), (LimitOf::Setting, 4096.0, 772.0));
        assert_eq!(limit(None, option), (LimitOf::Option, 5000.0, 1676.0));
        assert_eq!(limit(None, None), (LimitOf::Machine, 65536.0, 62212.0));
    }

    #[test]
    fn one_long_pause_does_not_delay_the_limit_whatever_the_number_of_rounds() {
        for rounds in [9, 24] {
            let limit = |pause: f64| {
                let paused = |round: usize| Marker {
                    t: Some(600.0 * round as f64 + if round > 4 { pause } else { 0.0 }),
                    ..marker(round, 8192.0, 100.0)
                };
                finding_of((0..rounds).map(paused)).time_to_limit().unwrap()
            };
            let (with, without) = (limit(36000.0), limit(0.0));
            let ratio = with.seconds / without.seconds;
            assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
            assert!((with.earliest / without.earliest - 1.0).abs() < 0.1);
        }
    }

    #[test]
    fn pages_of_a_mapped_file_are_in_use_at_the_earliest_and_free_at_the_latest() {
        let estimate = |mapped: f64| {
            let marker = |round: usize| {
                let rss = 1000.0 + 100.0 * round as f64 + mapped;
                let known = [
                    (Size::Rss, rss),
                    (Size::File, mapped),
                    (Size::Cgroup, rss),
                    (Size::CgroupReclaimable, mapped),
                ];
                Marker {
                    t: Some(600.0 * round as f64),
                    cgroup_limit_bytes: bytes(8000.0),
                    ..sample(round, sizes(&known))
                }
            };
            estimate_of(marker, None).unwrap()
        };
        let (without, with) = (estimate(0.0), estimate(2000.0));
        assert!((without.latest / with.latest - 1.0).abs() < 0.01);
        assert!((without.seconds - with.seconds - 20.0 * 600.0).abs() < 600.0);
        // At the limit, but not by memory that stays.
        let mapped = estimate(5000.0);
        assert!(mapped.left_bytes <= 0.0 && mapped.latest > 0.0);
    }

    #[test]
    fn the_interval_has_a_round_more_on_each_side_because_the_limit_is_hit_at_a_peak() {
        let estimate = estimate(8192.0, 100.0).unwrap();
        let [earlier, later] = [estimate.earliest, estimate.latest].map(|t| t - estimate.seconds);
        assert!((-earlier / 600.0 - 1.0).abs() < 0.01, "{earlier}");
        assert!((later / 600.0 - 1.0).abs() < 0.01, "{later}");
    }

    #[test]
    fn without_growth_or_a_limit_there_is_no_estimate() {
        assert!(estimate(8192.0, 0.0).is_none());
        assert!(estimate(f64::NAN, 100.0).is_none());
    }
}
