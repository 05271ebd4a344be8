//! The memory to request for each site: what its processes needed at once, what they will need until the job ends,
//! and a margin.
//!
//! Between two markers a process counts with its highest memory since the first of them. Pages of mapped files do not
//! count, because the kernel drops them at a limit.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use super::together::{changes, Change, Timeline, Visit};
use super::{Finding, Verdict};
use crate::report::model::{GroupId, Size, Unit};
use crate::report::units::MB;

/// Measured by scripts/bench/request.py: pages of files in use, memory of the kernel, and the difference between runs.
const MARGIN: f64 = 1.05;
const MARGIN_PER_PROCESS: f64 = 16.0 * MB;
const STEP: f64 = 10.0 * MB;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Server,
    Client,
}

/// The bytes that one site needs on one machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Request {
    pub role: Role,
    pub site: String,
    /// All its processes on the machine.
    pub bytes: f64,
    /// Those of one job, without the parents `SP` and `CP`. NVFlare's launchers start them in a container of their own.
    pub job_bytes: Option<f64>,
    /// A process grows, and the request does not contain the growth until the end of the job.
    pub grows_beyond: bool,
    /// Of such a process without rounds no growth can be added.
    #[serde(skip)]
    pub grows_without_rounds: bool,
    /// The limit of its control group, in which the kernel killed a process.
    pub more_than_bytes: Option<f64>,
    /// Its control group held so much that the kernel cannot drop, which is more than the processes of the report need.
    pub group_held_bytes: Option<f64>,
}

/// One request per site, the servers first. `rounds` are those of the whole job.
pub fn requests(findings: &[Finding], rounds: Option<u64>) -> Vec<Request> {
    type Machines<'a> = BTreeMap<Option<&'a str>, Vec<Use<'a>>>;
    let mut sites: BTreeMap<(Role, String), Machines> = BTreeMap::new();
    let groups = groups(findings);
    for finding in findings {
        let site = (role(finding), finding.process.site_or_name());
        let machines = sites.entry(site).or_default();
        let uses = machines.entry(finding.process.host.as_deref()).or_default();
        let is_alone = groups[&finding.process.group()].0.len() == 1;
        uses.push(Use::of(finding, is_alone, rounds));
    }
    let request = |((role, site), machines): ((Role, String), Machines)| {
        // A site of several machines needs as much on each as on the one that needs most.
        let most = |needed: fn(&[Use]) -> Option<f64>| {
            let machines = machines.values().filter_map(|uses| needed(uses));
            machines.reduce(f64::max)
        };
        let has = |is: fn(&Use) -> bool| machines.values().flatten().any(is);
        let bytes = most(|uses| needed(uses.iter()))?;
        let kills = machines.values().flatten().filter_map(|one| one.killed_at);
        Some(Request {
            role,
            site,
            bytes,
            more_than_bytes: kills
                .reduce(f64::max)
                .filter(|limit| bytes <= rounded(limit * MARGIN)),
            group_held_bytes: None,
            job_bytes: most(needed_by_a_job),
            grows_beyond: has(|one| one.grows_beyond),
            grows_without_rounds: has(|one| one.grows_beyond && !one.has_rounds),
        })
    };
    let requests = sites.into_iter().filter_map(request);
    let requests = requests.map(|one| ((one.role, one.site.clone()), one));
    let mut requests: BTreeMap<(Role, String), Request> = requests.collect();
    for (sites, held) in groups.values() {
        let needed = sites
            .iter()
            .filter_map(|site| Some(requests.get(site)?.bytes));
        let needed: f64 = needed.sum();
        for site in sites {
            if let Some(request) = requests.get_mut(site) {
                let more = held.filter(|held| *held > needed);
                request.group_held_bytes = more
                    .into_iter()
                    .chain(request.group_held_bytes)
                    .reduce(f64::max);
            }
        }
    }
    requests.into_values().collect()
}

/// The sites with a process in a control group, and the most memory that it held and the kernel cannot drop.
type Group = (BTreeSet<(Role, String)>, Option<f64>);

fn groups<'a>(findings: &'a [Finding]) -> HashMap<GroupId<'a>, Group> {
    let mut groups: HashMap<_, Group> = HashMap::new();
    for finding in findings {
        let process = finding.process;
        let held = process
            .points()
            .filter_map(|point| point.sizes.held_by_group());
        // At a kill it held as much as its limit.
        let kill = finding.kill.iter().filter(|kill| kill.counted_by_kernel);
        let held = held.chain(kill.map(|kill| kill.limit));
        let (sites, most) = groups.entry(process.group()).or_default();
        sites.insert((role(finding), process.site_or_name()));
        *most = held.chain(*most).reduce(f64::max);
    }
    groups
}

fn role(finding: &Finding) -> Role {
    let process = finding.process;
    match process.role.as_deref() == Some("server") || ["SP", "SJ"].contains(&&*process.proc) {
        true => Role::Server,
        false => Role::Client,
    }
}

/// The memory of one process over time, with its margin and the growth until the end of the job.
struct Use<'a> {
    job: Option<&'a str>,
    is_parent: bool,
    changes: Vec<Change>,
    /// The growth is not known.
    grows_beyond: bool,
    has_rounds: bool,
    /// The limit of a control group of this site alone, in which the kernel killed a process.
    killed_at: Option<f64>,
    /// What the process held and could not allocate.
    refused: Option<f64>,
}

impl<'a> Use<'a> {
    fn of(finding: &Finding<'a>, is_alone: bool, rounds: Option<u64>) -> Use<'a> {
        let growth = growth_to_come(finding, rounds);
        let kill = finding.kill.as_ref().filter(|_| is_alone);
        let refused = finding
            .process
            .refused
            .as_ref()
            .and_then(|one| one.needed_bytes);
        let needed = |marker: &Visit, bytes: f64| {
            // Most pages of files are shared, too, and must not be subtracted twice.
            let files = marker.point.sizes.get(Size::File).unwrap_or(0.0);
            let dropped = marker.shared.max(files);
            ((bytes - dropped).max(0.0) + growth.unwrap_or(0.0)) * MARGIN + MARGIN_PER_PROCESS
        };
        let highest = |marker: &Visit| needed(marker, marker.point.recent_peak);
        // From each marker until the next one. Where two meet, the larger counts.
        let bytes = |markers: &[Visit], place: usize| {
            let marker = &markers[place];
            let after = match markers.get(place + 1) {
                Some(next) => highest(next),
                None => needed(marker, marker.point.sizes.rss()),
            };
            [highest(marker).max(after), after]
        };
        Use {
            job: finding.process.job.as_deref(),
            is_parent: ["SP", "CP"].contains(&&*finding.process.proc),
            changes: changes(finding, bytes),
            grows_beyond: growth.is_none(),
            has_rounds: finding.unit == Unit::Round,
            killed_at: kill.map(|kill| kill.limit),
            refused: refused.map(|bytes| bytes as f64 + MARGIN_PER_PROCESS),
        }
    }
}

/// The upper bound of the growth from the last round to the end of the job; `None` if it is unknown.
fn growth_to_come(finding: &Finding, rounds: Option<u64>) -> Option<f64> {
    // With a higher limit the pages in swap would stay in memory.
    let growth = match finding.verdict {
        Verdict::Swap => Some(finding.fastest_growth()),
        _ => finding.growth_to_limit(),
    };
    let Some(growth) = growth else {
        return Some(0.0);
    };
    let in_rounds = finding.unit == Unit::Round;
    let last = finding.series.points().last()?;
    let last = last.round.filter(|_| in_rounds)?;
    let left = rounds?.saturating_sub(1).saturating_sub(last.max(0) as u64);
    Some(left as f64 * growth.high.max(0.0))
}

/// The processes of one job; of several jobs those of the largest. A process without a job belongs to each.
fn needed_by_a_job(uses: &[Use]) -> Option<f64> {
    let workers = uses.iter().filter(|one| !one.is_parent);
    let jobs: BTreeSet<Option<&str>> = workers.clone().map(|one| one.job).collect();
    let of_job = |job: Option<&str>| {
        let all = workers.clone();
        needed(all.filter(|one| one.job.is_none() || one.job == job))
    };
    jobs.into_iter().filter_map(of_job).reduce(f64::max)
}

/// The highest sum of processes that ran at once, or the highest floor. `None` without times.
fn needed<'a>(uses: impl Iterator<Item = &'a Use<'a>> + Clone) -> Option<f64> {
    let floors = uses
        .clone()
        .flat_map(|one| one.killed_at.into_iter().chain(one.refused));
    let floor = floors.fold(0.0, f64::max) * MARGIN;
    let sum = Timeline::of(uses.map(|one| &one.changes), f64::NAN)?.sum();
    Some(rounded(sum.peak.max(floor)))
}

fn rounded(bytes: f64) -> f64 {
    (bytes / STEP).ceil() * STEP
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{analyse, analyse_ended, bytes, processes, sample, sizes};
    use super::*;
    use flarena_shared::marker::Marker;

    fn marker(pid: u32, proc: &str, round: usize, rss: f64) -> Marker {
        Marker {
            pid: Some(pid),
            proc: proc.to_owned(),
            host: Some("node".into()),
            ..sample(round, sizes(&[(Size::Rss, rss), (Size::File, 20.0)]))
        }
    }

    fn requests_of(samples: Vec<Marker>, rounds: Option<u64>) -> Vec<Request> {
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
        let end = |pid: u32, round: usize| Marker {
            stage: "exit".into(),
            ..marker(pid, "TR", round, 120.0)
        };
        let second = (10..14).map(|round| Marker {
            seq: Some(round as u64 - 10),
            ..marker(2, "TR", round, 420.0)
        });
        let samples = first.chain([end(1, 4)]).chain(second).chain([end(2, 14)]);
        let found = requests_of(samples.collect(), None);
        assert!(is_near(found[0].bytes, 400.0, 1.0), "{found:?}");
    }

    #[test]
    fn a_process_without_exit_ends_where_the_one_begins_that_goes_on_with_its_rounds() {
        let found = |rounds: usize, first_round: usize, job: &str| {
            let first = (30 - rounds..30).map(|seq| Marker {
                round: Some((seq - (30 - rounds)) as i64),
                job: Some("a".to_owned()),
                ..marker(1, "TR", seq, 320.0)
            });
            let second = (30..60).map(|seq| Marker {
                round: Some((seq - 30 + first_round) as i64),
                job: Some(job.to_owned()),
                seq: Some(seq as u64 - 30),
                ..marker(2, "TR", seq, 420.0)
            });
            requests_of(first.chain(second).collect(), None)
        };
        for (rounds, first_round) in [(30, 30), (30, 29)] {
            let goes_on = found(rounds, first_round, "a");
            assert!(is_near(goes_on[0].bytes, 400.0, 1.0), "{goes_on:?}");
        }
        // From the first round, both in it, and another job.
        for (rounds, first_round, job) in [(30, 0, "a"), (1, 0, "a"), (30, 30, "b")] {
            let beside = found(rounds, first_round, job);
            assert!(is_near(beside[0].bytes, 700.0, 2.0), "{beside:?}");
        }
    }

    #[test]
    fn a_program_does_not_count_beside_the_one_that_it_became_by_an_exec() {
        let of = |program: &str, begin: usize| {
            let program = program.to_owned();
            let marker = move |seq: usize| Marker {
                program: Some(program.clone()),
                stage: if seq == 0 { "load" } else { "send" }.into(),
                seq: Some(seq as u64),
                ..marker(1, "TR", begin + seq, 320.0)
            };
            (0..6).map(marker)
        };
        let found = requests_of(of("prepare.py", 0).chain(of("train.py", 6)).collect(), None);
        assert!(is_near(found[0].bytes, 300.0, 1.0), "{found:?}");
    }

    #[test]
    fn a_killed_process_does_not_count_beside_the_one_that_follows() {
        let killed = (0..4).map(|round| Marker {
            stage: if round == 0 { "load" } else { "send" }.into(),
            cgroup_limit_bytes: bytes(330.0),
            ..marker(1, "TR", round, 320.0)
        });
        let next = (5..9).map(|round| Marker {
            seq: Some(round as u64 - 5),
            stage: if round == 8 { "exit" } else { "send" }.into(),
            ..marker(2, "TR", round, 220.0)
        });
        let findings = analyse_ended(processes(killed.chain(next)));
        assert!(findings[0].is_killed());
        let found = requests(&findings, None);
        // More than the limit of the killed one, and less than both.
        assert_eq!(found[0].bytes, 350.0 * MB, "{found:?}");
    }

    #[test]
    fn the_limit_of_a_kill_is_a_floor_in_a_group_of_one_site_and_a_note_in_one_of_several() {
        let of = |pid: u32, site: &str, proc: &str, round: usize, rss: f64| Marker {
            stage: if round == 0 { "load" } else { "send" }.into(),
            site: Some(site.to_owned()),
            cgroup_limit_bytes: bytes(1000.0),
            cgroup_oom_kills: Some(u64::from(round > 9)),
            ..marker(pid, proc, round, rss)
        };
        let killed = |site: &str| {
            let trainer = (0..9).map(|round| of(1, "site-1", "TR", round, 320.0));
            let other = (0..12).map(|round| of(2, site, "CJ", round, 120.0));
            let all = processes(trainer.chain(other).collect::<Vec<_>>());
            requests(&analyse_ended(all), None).swap_remove(0)
        };
        let (alone, shared) = (killed("site-1"), killed("site-2"));
        assert_eq!(alone.more_than_bytes, Some(1000.0 * MB));
        assert_eq!(alone.bytes, 1050.0 * MB);
        assert_eq!(alone.group_held_bytes, None);
        assert_eq!(shared.more_than_bytes, None);
        assert_eq!(shared.group_held_bytes, Some(1000.0 * MB));
    }

    #[test]
    fn the_room_for_a_refused_allocation_is_a_floor() {
        let refused = (0..6).map(|round| Marker {
            cgroup_limit_bytes: bytes(1000.0),
            asked_bytes: bytes(400.0).filter(|_| round == 3),
            left_bytes: bytes(330.0),
            ..marker(1, "TR", round, 320.0)
        });
        let found = requests_of(refused.collect(), None);
        assert!(found[0].bytes >= 720.0 * MB && found[0].bytes < 1.1 * 720.0 * MB);
        assert_eq!(found[0].more_than_bytes, None);
    }

    #[test]
    fn other_memory_of_the_control_group_is_named_if_it_is_more_than_the_sites_in_it_need() {
        let held = |group: f64| {
            let of = |pid: u32, round: usize| Marker {
                site: Some(format!("site-{pid}")),
                cgroup_bytes: bytes(group + 500.0),
                cgroup_reclaimable_bytes: bytes(500.0),
                cgroup_limit_bytes: bytes(4000.0),
                ..marker(pid, "TR", round, 320.0)
            };
            let both = |round| [of(1, round), of(2, round)];
            requests_of((0..6).flat_map(both).collect(), None)[1].group_held_bytes
        };
        assert_eq!(held(640.0), None);
        assert_eq!(held(2900.0), Some(2900.0 * MB));
    }

    #[test]
    fn a_named_process_and_those_that_it_starts_share_a_request() {
        let of = |pid, name: &str, round| Marker {
            site: None,
            name: Some(name.to_owned()),
            ..marker(pid, "-", round, 320.0)
        };
        let both = |round| [of(1, "job", round), of(2, "job/worker", round)];
        let found = requests_of((0..6).flat_map(both).collect(), None);
        assert_eq!((found.len(), &*found[0].site), (1, "job"));
        assert!(is_near(found[0].bytes, 600.0, 2.0), "{found:?}");
    }

    #[test]
    fn pages_of_files_that_workers_share_are_not_subtracted_twice() {
        // 300 MB of libraries and 250 MB of the parent are shared by ten processes, and each has 50 MB more.
        let worker = |pid, round| Marker {
            pss_bytes: bytes(105.0),
            file_bytes: bytes(300.0),
            ..marker(pid, "TR", round, 600.0)
        };
        let all = (0..6).flat_map(|round| (1..11).map(move |pid| worker(pid, round)));
        let found = requests_of(all.collect(), None);
        assert!(found[0].bytes >= (250.0 + 10.0 * 50.0) * MB, "{found:?}");
    }

    #[test]
    fn the_peak_between_two_markers_counts() {
        let peak = |round| Marker {
            peak_bytes: bytes(900.0),
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

    #[test]
    fn the_smaller_leak_beside_more_pages_of_files_is_charged_and_has_a_time_to_the_limit() {
        let of = |live: f64| {
            let marker = |round: usize| {
                let (live, file) = (200.0 + live * round as f64, 50.0 + 9.0 * round as f64);
                let known = [
                    (Size::Rss, live + file),
                    (Size::Anon, live),
                    (Size::File, file),
                    (Size::Live, live),
                ];
                Marker {
                    cgroup_limit_bytes: bytes(4000.0),
                    ..sample(round, sizes(&known))
                }
            };
            let finding = analyse(processes((0..50).map(marker))).remove(0);
            assert_eq!(finding.verdict, Verdict::FileBacked);
            finding
        };
        let leaks = of(6.0);
        let megabytes = requests(&[of(6.0)], Some(500))[0].bytes / MB;
        let needed = 200.0 + 499.0 * 6.0;
        let range = needed..1.1 * needed;
        assert!(range.contains(&megabytes), "{megabytes}");
        assert!(leaks.time_to_limit().is_some());
        assert!(of(0.0).time_to_limit().is_none());
        assert!(!requests(&[of(0.0)], None)[0].grows_beyond);
    }
}
