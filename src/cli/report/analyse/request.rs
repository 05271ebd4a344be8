//! The memory to request for each site: what its processes needed at once, what they will need until the job ends,
//! and a margin.
//!
//! Between two markers a process counts with its highest memory since the first of them. Pages of mapped files do not
//! count, because the kernel drops them at a limit.

use std::collections::BTreeMap;

use super::sweep::{sweep, visits, Span, Visit};
use super::{ProcessReport, Verdict};
use crate::report::model::{or_zero, Size, Unit};
use crate::report::units::MB;

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
    type Machines<'a> = BTreeMap<Option<&'a str>, Vec<Use<'a>>>;
    let mut sites: BTreeMap<(bool, String), Machines> = BTreeMap::new();
    for report in reports {
        let site = (!is_server(report), report.site_or_name());
        let machines = sites.entry(site).or_default();
        let uses = machines.entry(report.process.host.as_deref()).or_default();
        uses.push(Use::of(report, rounds));
    }
    let requests = sites
        .into_iter()
        .filter_map(|((is_client, site), machines)| {
            let uses: Vec<Vec<Use>> = machines.into_values().collect();
            // A site of several machines needs as much on each as on the one that needs most.
            let all = uses
                .iter()
                .filter_map(|uses| needed(&uses.iter().collect::<Vec<_>>()));
            let of_a_job = uses.iter().filter_map(|uses| needed_by_a_job(uses));
            Some(Request {
                site,
                is_server: !is_client,
                bytes: all.reduce(f64::max)?,
                job_bytes: of_a_job.reduce(f64::max),
                grows_beyond: uses.iter().flatten().any(|one| one.growth.is_none()),
            })
        });
    requests.collect()
}

fn is_server(report: &ProcessReport) -> bool {
    let process = &report.process;
    process.role.as_deref() == Some("server") || ["SP", "SJ"].contains(&&*process.proc)
}

/// The memory of one process over time.
struct Use<'a> {
    job: Option<&'a str>,
    is_parent: bool,
    /// Begin, end and bytes.
    spans: Vec<(f64, f64, f64)>,
    /// The growth until the end of the job; `None` if its rounds are not known.
    growth: Option<f64>,
}

impl Use<'_> {
    fn of(report: &ProcessReport, rounds: Option<u64>) -> Use<'_> {
        let (visits, tail) = visits(report);
        let needed = |visit: &Visit, bytes: f64| {
            let dropped = visit.shared + or_zero(visit.point.sizes[Size::File]);
            (bytes - dropped).max(0.0)
        };
        let until = |visit: &Visit| {
            let point = visit.point;
            let highest = point.peak.max(point.recent_peak);
            let begin = visit.before.unwrap_or(point.t);
            (begin, point.t, needed(visit, highest))
        };
        let mut spans: Vec<(f64, f64, f64)> = visits.iter().map(until).collect();
        if let Some(last) = visits.last().filter(|_| tail > 0.0) {
            let (t, bytes) = (last.point.t, needed(last, last.point.sizes[Size::Rss]));
            spans.push((t, t + tail, bytes));
        }
        Use {
            job: report.process.job.as_deref(),
            is_parent: ["SP", "CP"].contains(&&*report.process.proc),
            spans,
            growth: growth_to_come(report, rounds),
        }
    }
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
        .points()
        .last()?
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

/// The highest sum of processes that ran at once, their growth, and the margin, rounded up. `None` without times.
fn needed(uses: &[&Use]) -> Option<f64> {
    let spans = uses.iter().enumerate().flat_map(|(member, one)| {
        let growth = one.growth.unwrap_or(0.0);
        one.spans.iter().map(move |(begin, end, bytes)| Span {
            member,
            begin: *begin,
            end: *end,
            bytes: (bytes + growth) * MARGIN + MARGIN_PER_PROCESS,
        })
    });
    let spans: Vec<Span> = spans.collect();
    let largest = |open: &[f64]| open.iter().copied().reduce(f64::max);
    let (sum, _) = sweep(&spans, &vec![0; uses.len()], largest)?;
    Some((sum.peak()?.bytes / STEP).ceil() * STEP)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{analyse, processes, sample, sizes};
    use super::*;
    use crate::report::analyse::find_kills;
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
    fn a_killed_process_does_not_count_beside_the_one_that_follows() {
        let killed = (0..4).map(|round| Sample {
            stage: if round == 0 { "load" } else { "send" }.into(),
            cgroup_limit: Some(330.0 * MB),
            ..marker(1, "TR", round, 320.0)
        });
        let next = (5..9).map(|round| Sample {
            seq: Some(round as u64 - 5),
            stage: if round == 8 { "exit" } else { "send" }.into(),
            ..marker(2, "TR", round, 220.0)
        });
        let mut reports = analyse(processes(killed.chain(next)));
        find_kills(&mut reports, |_| false);
        assert!(reports[0].is_killed());
        let found = requests(&reports, None);
        assert!(is_near(found[0].bytes, 300.0, 1.0), "{found:?}");
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
