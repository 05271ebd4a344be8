//! The memory to request for each site: what its processes needed at once, what they will need until the job ends,
//! and a margin.
//!
//! Between two markers a process counts with its highest memory since the first of them. Pages of mapped files do not
//! count, because the kernel drops them at a limit.

use std::collections::BTreeMap;

use super::{ProcessReport, Verdict};
use crate::report::model::{or_zero, Point, Size, Unit, PEAK_STAGE};
use crate::report::units::MB;

/// A process without a marker `exit` counts for at least so long after its last marker.
const MIN_TAIL_SECONDS: f64 = 60.0;
/// Measured by scripts/bench/request.py: pages of files in use, memory of the kernel, and the difference between runs.
const MARGIN: f64 = 1.05;
const MARGIN_PER_PROCESS: f64 = 16.0 * MB;
const STEP: f64 = 10.0 * MB;

/// What one site needs on one machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub site: String,
    pub is_server: bool,
    /// All its processes on the machine.
    pub bytes: f64,
    /// Those of one job, without the parents `SP` and `CP`. NVFlare's launchers start them in a container of their own.
    pub job_bytes: Option<f64>,
    /// A process grows, and the request does not contain the growth until the end of the job.
    pub grows_beyond: bool,
}

/// One request per site, the servers first. `rounds` are those of the whole job.
pub fn requests(reports: &[ProcessReport], rounds: Option<u64>) -> Vec<Request> {
    let mut families: BTreeMap<(bool, String, Option<&str>), Vec<Use>> = BTreeMap::new();
    for report in reports {
        let site = report.site_or_name();
        let is_client = !is_server(report);
        let family = families.entry((is_client, site, report.process.host.as_deref()));
        family.or_default().extend(Use::of(report, rounds));
    }
    let mut requests: Vec<Request> = Vec::new();
    for ((is_client, site, _), uses) in families {
        let Some(bytes) = needed(&uses.iter().collect::<Vec<_>>()) else {
            continue;
        };
        let request = Request {
            site,
            is_server: !is_client,
            bytes,
            job_bytes: needed_by_a_job(&uses),
            grows_beyond: uses.iter().any(|one| one.growth.is_none()),
        };
        // A site of several machines needs as much on each as on the one that needs most.
        match requests
            .last_mut()
            .filter(|last| (last.is_server, &last.site) == (request.is_server, &request.site))
        {
            Some(last) => {
                last.bytes = last.bytes.max(request.bytes);
                last.job_bytes = last
                    .job_bytes
                    .into_iter()
                    .chain(request.job_bytes)
                    .reduce(f64::max);
                last.grows_beyond |= request.grows_beyond;
            }
            None => requests.push(request),
        }
    }
    requests
}

fn is_server(report: &ProcessReport) -> bool {
    let process = &report.process;
    process.role.as_deref() == Some("server") || ["SP", "SJ"].contains(&&*process.proc)
}

/// The memory of one process over time.
struct Use<'a> {
    job: Option<&'a str>,
    is_parent: bool,
    /// Start, end and bytes.
    spans: Vec<(f64, f64, f64)>,
    /// The growth until the end of the job; `None` if its rounds are not known.
    growth: Option<f64>,
}

impl Use<'_> {
    /// `None` for a process without times.
    fn of(report: &ProcessReport, rounds: Option<u64>) -> Option<Use<'_>> {
        let process = &report.process;
        let stages = process
            .stages
            .iter()
            .filter(|(name, _)| **name != *PEAK_STAGE);
        let points =
            stages.flat_map(|(_, series)| series.points().iter().chain(series.joined_last()));
        let mut points: Vec<&Point> = points.filter(|point| point.t.is_finite()).collect();
        points.sort_by_key(|point| point.order);
        let mut spans: Vec<(f64, f64, f64)> = Vec::with_capacity(points.len() + 1);
        let mut shared = 0.0;
        let mut pause = MIN_TAIL_SECONDS;
        for (i, point) in points.iter().enumerate() {
            let (rss, pss) = (point.sizes[Size::Rss], point.sizes[Size::Pss]);
            if !pss.is_nan() {
                shared = (rss - pss).max(0.0);
            }
            let before = i.checked_sub(1).map(|i| points[i]);
            let before = before.filter(|one| one.order.epoch == point.order.epoch);
            let begin = before.map_or(point.t, |one| one.t).min(point.t);
            pause = pause.max(point.t - begin);
            let highest = rss.max(point.peak).max(point.recent_peak);
            let dropped = shared + or_zero(point.sizes[Size::File]);
            spans.push((begin, point.t, (highest - dropped).max(0.0)));
        }
        let last = points.last()?;
        if !process.has_exited && process.processes < 2 {
            spans.push((
                last.t,
                last.t + pause,
                spans.last()?.2.min(rss_needed(last, shared)),
            ));
        }
        Some(Use {
            job: process.job.as_deref(),
            is_parent: ["SP", "CP"].contains(&&*process.proc),
            spans,
            growth: growth_to_come(report, rounds),
        })
    }
}

fn rss_needed(point: &Point, shared: f64) -> f64 {
    (point.sizes[Size::Rss] - shared - or_zero(point.sizes[Size::File])).max(0.0)
}

/// The upper bound of the growth from the last round to the end of the job; `None` if it is unknown.
fn growth_to_come(report: &ProcessReport, rounds: Option<u64>) -> Option<f64> {
    let Some(slope) = report.growth() else {
        return Some(0.0);
    };
    let parts = &report.finding.parts;
    let of_files = or_zero(parts.file);
    if report.finding.verdict == Verdict::FileBacked && of_files > or_zero(parts.shmem) {
        return Some(0.0);
    }
    let in_rounds = report.finding.unit == Unit::Round;
    let last = report
        .series()?
        .last_visit()?
        .known_round()
        .filter(|_| in_rounds)?;
    let left = rounds?.saturating_sub(1).saturating_sub(last.max(0) as u64);
    Some(left as f64 * (slope.high - of_files).max(0.0))
}

/// The processes of one job; of several jobs those of the largest. A process without a job belongs to each.
fn needed_by_a_job(uses: &[Use]) -> Option<f64> {
    let workers = || uses.iter().filter(|one| !one.is_parent);
    let mut jobs: Vec<Option<&str>> = workers().map(|one| one.job).collect();
    jobs.sort_unstable();
    jobs.dedup();
    let of_job = |job: Option<&str>| {
        let members = workers().filter(|one| one.job.is_none() || one.job == job);
        needed(&members.collect::<Vec<_>>())
    };
    jobs.into_iter().filter_map(of_job).reduce(f64::max)
}

/// The highest sum of processes that ran at once, their growth, and the margin, rounded up.
fn needed(uses: &[&Use]) -> Option<f64> {
    // At one moment the spans that begin come before those that end.
    let spans = uses
        .iter()
        .enumerate()
        .flat_map(|(i, one)| one.spans.iter().map(move |span| (i, span)));
    let events =
        spans.flat_map(|(i, (begin, end, bytes))| [(*begin, 0, i, *bytes), (*end, 1, i, *bytes)]);
    let mut events: Vec<(f64, u8, usize, f64)> = events.collect();
    events.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    // Two spans of a process meet at a marker: the larger one counts.
    let mut open: Vec<Vec<f64>> = vec![Vec::new(); uses.len()];
    let mut sizes = vec![0.0; uses.len()];
    let (mut total, mut highest) = (0.0, None::<f64>);
    for (_, kind, i, bytes) in events {
        if kind == 0 {
            open[i].push(bytes);
        } else if let Some(place) = open[i].iter().position(|one| *one == bytes) {
            open[i].swap_remove(place);
        }
        let largest = open[i].iter().copied().reduce(f64::max);
        let growth = uses[i].growth.unwrap_or(0.0);
        let size = largest.map_or(0.0, |bytes| (bytes + growth) * MARGIN + MARGIN_PER_PROCESS);
        total += size - sizes[i];
        sizes[i] = size;
        if kind == 0 {
            highest = Some(highest.map_or(total, |highest| highest.max(total)));
        }
    }
    highest.map(|bytes| (bytes / STEP).ceil() * STEP)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{analyse, processes, sample, sizes};
    use super::*;
    use crate::report::model::Sample;

    fn marker(pid: u32, proc: &str, round: usize, rss: f64) -> Sample {
        Sample {
            pid: Some(pid),
            proc: proc.to_owned(),
            host: Some("node".into()),
            ..sample(round, sizes(&[(Size::Rss, rss), (Size::File, 20.0)]))
        }
    }

    fn requests_of(samples: Vec<Sample>, rounds: Option<u64>) -> Vec<Request> {
        requests(&analyse(processes(samples)), rounds)
    }

    /// 10 MB more than the margin, so that the expectation does not depend on the rounding.
    fn is_near(bytes: f64, megabytes: f64, processes: f64) -> bool {
        let exact = megabytes * MB * MARGIN + processes * MARGIN_PER_PROCESS;
        bytes >= exact && bytes < exact + STEP
    }

    #[test]
    fn processes_that_lived_at_once_are_summed_and_the_parent_is_no_part_of_the_job() {
        let mut samples = Vec::new();
        for round in 0..6 {
            samples.push(marker(1, "CP", round, 120.0));
            samples.push(marker(2, "CJ", round, 220.0));
            samples.push(marker(3, "TR", round, 320.0));
        }
        let found = requests_of(samples, None);
        assert_eq!(found.len(), 1);
        assert!(is_near(found[0].bytes, 600.0, 3.0), "{found:?}");
        assert!(
            is_near(found[0].job_bytes.unwrap(), 500.0, 2.0),
            "{found:?}"
        );
    }

    #[test]
    fn processes_that_followed_each_other_are_not_summed() {
        let first = (0..4).map(|round| marker(1, "TR", round, 320.0));
        let end = |pid: u32, round: usize| Sample {
            stage: "exit".into(),
            ..marker(pid, "TR", round, 120.0)
        };
        let second = (10..14).map(|round| Sample {
            seq: Some(round as u64 - 10),
            ..marker(2, "TR", round, 420.0)
        });
        let samples = first.chain([end(1, 4)]).chain(second).chain([end(2, 14)]);
        let found = requests_of(samples.collect(), None);
        assert!(is_near(found[0].bytes, 400.0, 1.0), "{found:?}");
    }

    #[test]
    fn the_peak_between_two_markers_counts() {
        let peak = |round| Sample {
            recent_peak_rss: Some(900.0 * MB),
            ..marker(1, "TR", round, 320.0)
        };
        let found = requests_of((0..6).map(peak).collect(), None);
        assert!(is_near(found[0].bytes, 880.0, 1.0), "{found:?}");
    }

    #[test]
    fn growth_counts_until_the_last_round_of_the_job() {
        let growing = || (0..20).map(|round| marker(1, "TR", round, 320.0 + 10.0 * round as f64));
        let without = requests_of(growing().collect(), None);
        assert!(without[0].grows_beyond);
        let with = requests_of(growing().collect(), Some(50));
        assert!(!with[0].grows_beyond);
        let more = (with[0].bytes - without[0].bytes) / MB;
        assert!((300.0..350.0).contains(&more), "{more}");
    }
}
