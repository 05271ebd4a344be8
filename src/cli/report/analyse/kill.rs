//! Finds processes that the kernel most likely killed for lack of memory.
//!
//! The evidence is the kernel's count of kills in their control group, or a last marker near the limit. Without it
//! nothing is said about an end without the marker `exit`: a signal cannot be told from `_exit`.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::stats::{median, MIN_ROUNDS};
use crate::report::model::{add_kill_count, KillCounts, Process, Series};
use flarena_shared::stages::Stage;

/// The evidence that the kernel killed a process.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Kill {
    /// The kernel counted a kill in the control group after the last marker. Otherwise the last marker is near the limit.
    pub counted_by_kernel: bool,
    /// The last stage of the program, if it has one.
    pub stage: Option<String>,
    pub round: Option<i64>,
    /// RSS and limit at the last marker.
    pub rss_bytes: f64,
    #[serde(skip)]
    pub limit: f64,
    /// `None` if the evidence names this process alone.
    #[serde(flatten)]
    pub candidates: Option<Candidates>,
}

/// The processes that the same evidence names.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidates {
    #[serde(rename = "candidate_count")]
    pub count: usize,
    #[serde(rename = "candidates")]
    pub largest: Vec<String>,
}

impl Kill {
    pub fn is_certain(&self) -> bool {
        self.candidates.is_none()
    }
}

/// A process whose control group comes so near to its limit may be killed at the next allocation.
const NEAR_LIMIT: f64 = 0.95;
/// Its last marker rises if it exceeds the median of its stage by so many median changes, and by this share of the limit.
const NOISE: f64 = 3.0;
const LEAST_RISE: f64 = 0.001;
/// More candidates for one kill are counted.
const MAX_NAMED: usize = 10;
/// Clocks of processes on one machine agree, but a marker is written a moment after its count is read.
const SAME_MOMENT_SECONDS: f64 = 1.0;

/// A process of a control group.
#[derive(Clone, Copy)]
struct Member<'a> {
    /// In the list of all.
    place: usize,
    process: &'a Process,
    limit: f64,
    /// The time of the last marker.
    end: f64,
    /// It does not run, and wrote no marker `exit`.
    ended_without_exit: bool,
}

impl Member<'_> {
    /// RSS at the last marker.
    fn rss(&self) -> f64 {
        let last = self.process.last_visit();
        last.map_or(0.0, |(_, point)| point.peak)
    }
}

/// The kill of each process, if there is evidence. `may_run` is true for a process that runs, or may run elsewhere.
pub fn find(all: &[Process], may_run: impl Fn(&Process) -> bool) -> Vec<Option<Kill>> {
    let mut groups: HashMap<_, Vec<Member>> = HashMap::new();
    for (place, process) in all.iter().enumerate() {
        if let (Some(_), Some(limit)) = (process.pid, process.cgroup_limit) {
            groups.entry(process.group()).or_default().push(Member {
                place,
                process,
                limit,
                end: process.last_time().unwrap_or(f64::INFINITY),
                ended_without_exit: !process.has_ended() && !may_run(process),
            });
        }
    }
    let mut kills = vec![None; all.len()];
    for (mut suspects, counted) in groups.values().flat_map(|members| suspects(members)) {
        suspects.sort_by(|a, b| b.rss().total_cmp(&a.rss()));
        let largest = suspects.iter().take(MAX_NAMED);
        let candidates = (suspects.len() > counted.unwrap_or(1)).then(|| Candidates {
            count: suspects.len(),
            largest: largest.map(|member| member.process.full_name()).collect(),
        });
        for suspect in suspects {
            let process = suspect.process;
            let stage = process.last_own_visit();
            kills[suspect.place] = Some(Kill {
                counted_by_kernel: counted.is_some(),
                stage: stage.map(|(name, _)| name.to_owned()),
                round: stage.and_then(|(_, point)| point.round),
                rss_bytes: suspect.rss(),
                limit: suspect.limit,
                candidates: candidates.clone(),
            });
        }
    }
    kills
}

/// Processes that the same evidence names, and the kernel's number of kills; `None` if only the last markers, which are
/// near the limit, name the processes.
type Suspects<'a> = (Vec<Member<'a>>, Option<usize>);

/// The processes that each kill in a control group may have ended.
fn suspects<'a>(members: &[Member<'a>]) -> Vec<Suspects<'a>> {
    let counts = counts(members);
    let (mut by_rise, mut near) = (BTreeMap::<_, Vec<Member>>::new(), Vec::new());
    for member in members.iter().filter(|member| member.ended_without_exit) {
        let seen = member.process.kill_counts.last_key_value();
        let seen = seen.and_then(|(count, _)| counts.get_key_value(count));
        let next = seen.and_then(|(count, _)| counts.range(count + 1..).next());
        match seen.zip(next) {
            // Another process saw the same count so late that this one had ended before.
            _ if seen.is_some_and(|(_, (_, last))| member.process.is_silent(*last)) => {}
            Some(((count, _), (next, _))) => {
                by_rise.entry((*count, *next)).or_default().push(*member);
            }
            None if is_near_limit(member) => near.push(*member),
            None => {}
        }
    }
    let end = members.iter().map(|member| member.end);
    let end = end.fold(f64::NEG_INFINITY, f64::max);
    let counted = by_rise.into_iter().map(|((count, next), suspects)| {
        // Those that were silent for longer than ever before when the last marker of the group was written. The others
        // may have gone on. If all may, all are suspects.
        let is_silent = |member: &Member| end - member.end > member.process.longest_silence();
        let (silent, others): (Vec<Member>, _) = suspects.into_iter().partition(is_silent);
        let suspects = if silent.is_empty() { others } else { silent };
        (suspects, Some((next - count) as usize))
    });
    // One kill may have ended any of those whose last markers are so near to each other.
    near.sort_by(|a, b| a.end.total_cmp(&b.end));
    let near = near.chunk_by(|a, b| !a.process.is_silent(b.end));
    let near = near.map(|suspects| (suspects.to_vec(), None));
    counted.chain(near).collect()
}

/// The kernel's counts of kills as the processes of one control group saw them.
fn counts(members: &[Member]) -> KillCounts {
    let mut counts = KillCounts::new();
    for (count, times) in members.iter().flat_map(|one| &one.process.kill_counts) {
        add_kill_count(&mut counts, *count, *times);
    }
    // A count never falls. If it does, the processes belong to several groups with the same limit.
    let mut rises = counts.values().zip(counts.values().skip(1));
    match rises.all(|((_, last), (first, _))| *last <= first + SAME_MOMENT_SECONDS) {
        true => counts,
        false => KillCounts::new(),
    }
}

/// A forked worker near the limit is no suspect: Python ends it by `_exit`, without the marker `exit`. Neither is a process
/// that stood as near to the limit in the rounds before.
fn is_near_limit(Member { process, limit, .. }: &Member) -> bool {
    let Some((stage, last)) = process.last_visit().filter(|_| process.loaded.is_some()) else {
        return false;
    };
    let rises = || {
        let earlier = process.series(stage).into_iter().flat_map(Series::points);
        let earlier = earlier.filter(|point| point.order != last.order);
        let uses: Vec<f64> = earlier.map(|point| point.sizes.unreclaimable()).collect();
        let changes = uses.windows(2).map(|pair| (pair[1] - pair[0]).abs());
        let noise = NOISE * median(&changes.collect::<Vec<f64>>()) + LEAST_RISE * limit;
        uses.len() < MIN_ROUNDS || last.sizes.unreclaimable() > median(&uses) + noise
    };
    let is_near = last.sizes.unreclaimable() >= NEAR_LIMIT * limit;
    stage == Stage::AtLimit.name() || is_near && rises()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::{bytes, processes, sample, sizes};
    use crate::report::model::Size;
    use crate::report::units::MB;
    use flarena_shared::marker::{Marker, ShortHash};

    /// `(pid, seconds, stage, count of kills, RSS in MB)`
    type Row = (u32, f64, &'static str, f64, f64);

    /// The kills of processes with these markers, in a control group of 1000 MB. The stage `train` has round 12.
    fn kills(markers: &[Row]) -> Vec<(u32, Kill)> {
        kills_of(markers, |_| false)
    }

    fn kills_of(markers: &[Row], may_run: impl Fn(&Process) -> bool) -> Vec<(u32, Kill)> {
        let marker = |(place, &(pid, t, stage, oom_kills, rss)): (usize, &Row)| Marker {
            pid: Some(pid),
            t: Some(t),
            stage: stage.into(),
            round: (stage == "train").then_some(12),
            cgroup_limit_bytes: bytes(1000.0),
            cgroup_oom_kills: Some(oom_kills as u64),
            seq: Some(markers[..place].iter().filter(|one| one.0 == pid).count() as u64),
            ..sample(place, sizes(&[(Size::Rss, rss)]))
        };
        let all = processes(markers.iter().enumerate().map(marker));
        let kills = find(&all, may_run).into_iter().zip(&all);
        let mut named: Vec<(u32, Kill)> = kills
            .filter_map(|(kill, process)| Some((process.pid?, kill?)))
            .collect();
        named.sort_by_key(|(pid, _)| *pid);
        named
    }

    /// Pids, and whether the evidence names this process alone.
    fn named(markers: &[Row]) -> Vec<(u32, bool)> {
        let kills = kills(markers).into_iter();
        kills.map(|(pid, kill)| (pid, kill.is_certain())).collect()
    }

    fn one(rss: f64) -> [Row; 3] {
        [
            (7, 0.0, "load", 0.0, 5.0),
            (7, 10.0, "train", 0.0, rss),
            (7, 50.0, "periodic", 0.0, rss),
        ]
    }

    #[test]
    fn a_process_whose_last_marker_is_near_the_limit_was_killed() {
        let (_, kill) = kills(&one(960.0)).remove(0);
        assert_eq!(
            (kill.stage.as_deref(), kill.round),
            (Some("train"), Some(12))
        );
        assert!(
            (
                kill.rss_bytes / MB,
                kill.counted_by_kernel,
                kill.is_certain()
            ) == (960.0, false, true)
        );
        assert_eq!(kills(&one(905.0)), []);
        assert_eq!(kills_of(&one(960.0), |_| true), []);
        let exited = [one(960.0).as_slice(), &[(7, 86.0, "exit", 0.0, 960.0)]].concat();
        assert_eq!(kills(&exited), []);
        let fallen = [one(960.0).as_slice(), &[(7, 86.0, "send", 0.0, 100.0)]].concat();
        assert_eq!(kills(&fallen), []);
        let refused = [one(800.0).as_slice(), &[(7, 86.0, "at_limit", 0.0, 800.0)]].concat();
        let (_, kill) = kills(&refused).remove(0);
        assert_eq!(kill.stage.as_deref(), Some("train"));
    }

    #[test]
    fn a_process_that_stood_near_the_limit_in_all_rounds_was_not_killed_by_that_evidence() {
        let is_killed = |leak: f64| {
            let send = |round: usize| {
                let noise = (round * 7 % 5) as f64 / 5.0;
                (
                    7,
                    10.0 * round as f64,
                    "send",
                    0.0,
                    980.0 + noise - leak * (20 - round) as f64,
                )
            };
            let load = [(7, 0.0, "load", 0.0, 5.0)];
            !kills(
                &load
                    .into_iter()
                    .chain((1..=20).map(send))
                    .collect::<Vec<Row>>(),
            )
            .is_empty()
        };
        assert!(!is_killed(0.0));
        assert!(is_killed(1.0));
    }

    #[test]
    fn a_process_whose_last_marker_precedes_a_rise_of_the_count_of_kills_was_killed() {
        let all = [one(100.0).as_slice(), &[(8, 99.0, "send", 1.0, 50.0)]].concat();
        let (pid, kill) = kills(&all).remove(0);
        assert!(pid == 7 && kill.counted_by_kernel && kill.is_certain());
    }

    #[test]
    fn a_process_that_saw_the_count_rise_outlived_the_kill() {
        let all = [
            (7, 0.0, "load", 0.0, 5.0),
            (7, 50.0, "send", 0.0, 990.0),
            (7, 60.0, "send", 1.0, 300.0),
        ];
        assert_eq!(kills(&all), []);
    }

    #[test]
    fn a_forked_worker_near_the_limit_was_not_killed_for_lack_of_an_exit_marker() {
        let forked = |rss| {
            [
                (1, 0.0, "load", 0.0, rss),
                (2, 1.0, "loaded", 0.0, rss),
                (1, 9.0, "exit", 0.0, rss),
            ]
        };
        assert_eq!(kills(&forked(990.0)), []);
        assert_eq!(kills(&forked(100.0)), []);
    }

    #[test]
    fn the_candidates_for_one_kill_are_named_the_largest_first() {
        let workers = [
            (1, 0.0, "load", 0.0, 50.0),
            (2, 1.0, "loaded", 0.0, 300.0),
            (3, 2.0, "loaded", 0.0, 400.0),
            (1, 9.0, "send", 1.0, 50.0),
            (1, 9.5, "exit", 1.0, 50.0),
        ];
        let found = kills(&workers);
        assert_eq!(
            found.iter().map(|(pid, _)| *pid).collect::<Vec<_>>(),
            [2, 3]
        );
        for (_, kill) in found {
            let candidates = kill.candidates.unwrap().largest;
            assert_eq!(candidates, ["site-1 TR, pid 3", "site-1 TR, pid 2"]);
        }
        let twice = workers.map(|(pid, t, stage, count, rss)| (pid, t, stage, 2.0 * count, rss));
        assert_eq!(named(&twice), [(2, true), (3, true)]);
    }

    #[test]
    fn a_process_of_constant_size_may_be_silent_for_twice_the_longest_pause_between_periodic_markers(
    ) {
        for (stage, silence) in [("periodic", 32.0 * 60.0), ("send", 16.0 * 60.0)] {
            let marker = |minute: u32| Marker {
                t: Some(60.0 * f64::from(minute)),
                stage: stage.into(),
                ..sample(minute as usize, sizes(&[(Size::Rss, 300.0)]))
            };
            let found = processes([0, 1, 3, 7, 15, 31].map(marker));
            assert_eq!(found[0].silence(), silence, "{stage}");
        }
    }

    #[test]
    fn a_process_that_was_silent_for_longer_before_is_no_candidate() {
        let all = [
            (1, 0.0, "load", 0.0, 86.0),
            (1, 60.0, "periodic", 0.0, 86.0),
            (2, 55.0, "load", 0.0, 5.0),
            (2, 60.0, "send", 0.0, 300.0),
            (3, 0.0, "load", 0.0, 50.0),
            (3, 61.0, "send", 1.0, 50.0),
            (3, 70.0, "send", 1.0, 50.0),
            (3, 71.0, "exit", 1.0, 50.0),
        ];
        assert_eq!(named(&all), [(2, true)]);
    }

    #[test]
    fn an_unchanged_count_long_after_the_last_marker_excludes_a_kill() {
        let at = |t: f64| {
            named(&[
                (1, 0.0, "load", 0.0, 100.0),
                (2, 1.0, "load", 0.0, 960.0),
                (1, t, "exit", 0.0, 100.0),
            ])
        };
        assert_eq!(at(30.0), [(2, true)]);
        assert_eq!(at(90.0), []);
    }

    #[test]
    fn a_container_or_job_beside_it_has_a_control_group_and_a_count_of_its_own() {
        let of = |pid, boot: &str, group: &str, markers: &[(f64, f64)]| -> Vec<Marker> {
            let marker = |(place, &(t, rss)): (usize, &(f64, f64))| Marker {
                pid: Some(pid),
                boot: ShortHash::try_from(boot.to_owned()).ok(),
                cgroup: ShortHash::try_from(group.to_owned()).ok(),
                host: Some("pod-1".to_owned()),
                t: Some(t),
                stage: if place == 0 { "load" } else { "train" }.into(),
                cgroup_limit_bytes: bytes(1000.0),
                cgroup_oom_kills: Some(if pid == 9 { 1 } else { 0 }),
                ..sample(place, sizes(&[(Size::Rss, rss)]))
            };
            markers.iter().enumerate().map(marker).collect()
        };
        for (boot, group) in [("b", "1"), ("a", "2")] {
            let killed = |first: &[(f64, f64)], pid| {
                let next = of(pid, boot, group, &[(70.0, 50.0), (300.0, 60.0)]);
                let all = processes(of(7, "a", "1", first).into_iter().chain(next));
                let kills = find(&all, |_| false);
                kills.iter().filter(|kill| kill.is_some()).count()
            };
            assert_eq!(killed(&[(0.0, 5.0), (50.0, 960.0)], 8), 1);
            assert_eq!(killed(&[(0.0, 5.0), (50.0, 100.0)], 9), 0);
        }
    }

    #[test]
    fn a_count_that_falls_belongs_to_several_groups_and_names_no_process() {
        let others = [(8, 99.0, "send", 1.0, 50.0), (9, 110.0, "send", 0.0, 50.0)];
        assert_eq!(kills(&[one(100.0).as_slice(), &others].concat()), []);
    }
}
