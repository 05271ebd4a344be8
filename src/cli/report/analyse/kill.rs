//! Finds processes that the kernel most likely killed for lack of memory.
//!
//! The evidence is the kernel's count of kills in their control group, or a last marker near the limit. Without it
//! nothing is said about an end without the marker `exit`: a signal cannot be told from `_exit`.

use std::collections::HashMap;

use super::ProcessReport;
use crate::report::model::{KillCount, Point, Process};
use flarena_shared::stages::Stage;

/// The evidence that the kernel killed a process.
#[derive(Clone, Debug, PartialEq)]
pub struct Kill {
    /// The kernel counted a kill in the control group after the last marker. Otherwise the last marker is near the limit.
    pub is_counted: bool,
    /// The last stage of the program, if it has one.
    pub stage: Option<String>,
    pub round: Option<i64>,
    /// RSS and limit at the last marker.
    pub rss: f64,
    pub limit: f64,
    /// The number of processes that the same evidence names; 1 if it names only this one.
    pub candidate_count: usize,
    /// The largest of these.
    pub candidates: Vec<String>,
}

impl Kill {
    pub fn is_certain(&self) -> bool {
        self.candidate_count == 1
    }
}

/// A process whose control group comes so near to its limit may be killed at the next allocation.
const NEAR_LIMIT: f64 = 0.95;
/// More candidates for one kill are counted.
const MAX_NAMED: usize = 10;
/// Clocks of processes on one machine agree, but a marker is written a moment after its count is read.
const SAME_MOMENT_SECONDS: f64 = 1.0;
/// A process of constant size writes periodic markers more and more rarely.
const MIN_SILENCE_SECONDS: f64 = 60.0;

/// The kill of each process, if there is evidence. `may_run` is true for a process that runs, or may run elsewhere.
pub fn find(all: &[ProcessReport], may_run: impl Fn(&Process) -> bool) -> Vec<Option<Kill>> {
    let mut groups: HashMap<(Option<&str>, u64), Vec<usize>> = HashMap::new();
    for (place, report) in all.iter().enumerate() {
        let process = &report.process;
        if process.pid.is_some() && !process.cgroup_limit.is_nan() {
            let group = (process.host.as_deref(), process.cgroup_limit.to_bits());
            groups.entry(group).or_default().push(place);
        }
    }
    let mut kills = vec![None; all.len()];
    for members in groups.into_values() {
        let has_ended = |place: &usize| {
            let process = &all[*place].process;
            !process.has_exited && process.became.is_none() && !may_run(process)
        };
        let ended: Vec<usize> = members.iter().copied().filter(has_ended).collect();
        if !ended.is_empty() {
            let members: Vec<&Process> = members.iter().map(|place| &all[*place].process).collect();
            for (suspects, counted) in Group::of(&members).suspects(all, ended) {
                name(all, suspects, counted, &mut kills);
            }
        }
    }
    kills
}

/// Processes that the same evidence names, and the kernel's number of kills; `None` if only the last markers, which are
/// near the limit, name the processes.
type Suspects = (Vec<usize>, Option<usize>);

fn name(
    all: &[ProcessReport],
    mut suspects: Vec<usize>,
    counted: Option<usize>,
    kills: &mut [Option<Kill>],
) {
    let rss = |place: &usize| {
        let last = all[*place].process.last_visit();
        last.map_or(f64::NAN, |(_, point)| point.peak)
    };
    suspects.sort_by(|a, b| rss(b).total_cmp(&rss(a)));
    let is_one_of_several = suspects.len() > counted.unwrap_or(1);
    let names: Vec<String> = match is_one_of_several {
        true => {
            let largest = suspects.iter().take(MAX_NAMED);
            largest.map(|place| all[*place].full_name()).collect()
        }
        false => Vec::new(),
    };
    for place in &suspects {
        let process = &all[*place].process;
        let stage = process.last_own_visit();
        kills[*place] = Some(Kill {
            is_counted: counted.is_some(),
            stage: stage.map(|(name, _)| name.to_owned()),
            round: stage.and_then(|(_, point)| point.known_round()),
            rss: rss(place),
            limit: process.cgroup_limit,
            candidate_count: if is_one_of_several { suspects.len() } else { 1 },
            candidates: names.clone(),
        });
    }
}

/// The kernel's count of kills, as the processes of one control group saw it.
struct Group {
    /// Each count, with the first and the last time at which a process saw it.
    counts: Vec<KillCount>,
    /// The last marker of all.
    end: f64,
}

impl Group {
    fn of(members: &[&Process]) -> Group {
        let seen = members.iter().flat_map(|process| &process.kill_counts);
        let mut counts: Vec<KillCount> = seen.copied().collect();
        counts.sort_by(|a, b| a.count.total_cmp(&b.count));
        counts.dedup_by(|other, kept| {
            let is_same = other.count == kept.count;
            if is_same {
                kept.first = kept.first.min(other.first);
                kept.last = kept.last.max(other.last);
            }
            is_same
        });
        let ends = members.iter().map(|process| process.last_time());
        // A count never falls. If it does, the processes belong to several groups with the same limit.
        let is_one = counts
            .windows(2)
            .all(|pair| pair[0].last <= pair[1].first + SAME_MOMENT_SECONDS);
        Group {
            counts: if is_one { counts } else { Vec::new() },
            end: ends.fold(f64::NEG_INFINITY, f64::max),
        }
    }

    /// The processes that each kill may have ended, of those that have ended.
    fn suspects(&self, all: &[ProcessReport], ended: Vec<usize>) -> Vec<Suspects> {
        let mut by_rise: Vec<Vec<usize>> = vec![Vec::new(); self.counts.len()];
        let mut near: Vec<usize> = Vec::new();
        for place in ended {
            let process = &all[place].process;
            let (end, count) = (process.last_time(), process.kill_count());
            // Another process saw the same count so late that this one had ended before.
            let silence = process.longest_silence().max(MIN_SILENCE_SECONDS);
            let mut counts = self.counts.iter();
            let at_end = counts.position(|seen| Some(seen.count) == count);
            let is_outlived = at_end.is_some_and(|at| self.counts[at].last > end + silence);
            let rise = at_end.map(|at| at + 1);
            match rise.filter(|rise| *rise < self.counts.len()) {
                _ if is_outlived => {}
                Some(rise) => by_rise[rise].push(place),
                None if is_near_limit(process) => near.push(place),
                None => {}
            }
        }
        let by_rise = by_rise.into_iter().enumerate().skip(1);
        let counted = by_rise.map(|(rise, places)| {
            let kills = self.counts[rise].count - self.counts[rise - 1].count;
            (self.silent(all, places), Some(kills as usize))
        });
        let near = ended_together(all, near).into_iter();
        counted.chain(near.map(|places| (places, None))).collect()
    }

    /// Those that were silent for longer than ever before when the last marker of the group was written. The others may
    /// have gone on. If all may, all are suspects.
    fn silent(&self, all: &[ProcessReport], places: Vec<usize>) -> Vec<usize> {
        let is_silent = |place: &usize| {
            let process = &all[*place].process;
            self.end - process.last_time() > process.longest_silence()
        };
        match places.iter().copied().filter(is_silent).collect::<Vec<_>>() {
            silent if silent.is_empty() => places,
            silent => silent,
        }
    }
}

/// A forked worker near the limit is no suspect: Python ends it by `_exit`, without the marker `exit`.
fn is_near_limit(process: &Process) -> bool {
    let is_near = |(stage, point): (&str, &Point)| {
        let used = point.sizes.unreclaimable();
        stage == Stage::AtLimit.name() || used >= NEAR_LIMIT * process.cgroup_limit
    };
    process.loaded.is_some() && process.last_visit().is_some_and(is_near)
}

/// Divides processes into those whose last markers are so near to each other that one kill may have ended any of them.
fn ended_together(all: &[ProcessReport], mut places: Vec<usize>) -> Vec<Vec<usize>> {
    let end = |place: &usize| all[*place].process.last_time();
    places.sort_by(|a, b| end(a).total_cmp(&end(b)));
    let is_near = |a: &usize, b: &usize| {
        let silence = all[*a].process.longest_silence().max(MIN_SILENCE_SECONDS);
        end(b) - end(a) <= silence
    };
    places.chunk_by(is_near).map(<[usize]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::analyse;
    use crate::report::analyse::fixtures::{processes, sample, sizes};
    use crate::report::model::{Sample, Size};
    use crate::report::units::MB;

    /// `(pid, seconds, stage, count of kills, RSS in MB)`
    type Marker = (u32, f64, &'static str, f64, f64);

    /// The kills of processes with these markers, in a control group of 1000 MB. The stage `train` has round 12.
    fn kills(markers: &[Marker]) -> Vec<(u32, Kill)> {
        kills_of(markers, |_| false)
    }

    fn kills_of(markers: &[Marker], may_run: impl Fn(&Process) -> bool) -> Vec<(u32, Kill)> {
        let marker = |(place, &(pid, t, stage, oom_kills, rss)): (usize, &Marker)| Sample {
            pid: Some(pid),
            t: Some(t),
            stage: stage.into(),
            round: (stage == "train").then_some(12),
            cgroup_limit: Some(1000.0 * MB),
            oom_kills: Some(oom_kills),
            seq: Some(markers[..place].iter().filter(|one| one.0 == pid).count() as u64),
            ..sample(place, sizes(&[(Size::Rss, rss)]))
        };
        let all = analyse(processes(markers.iter().enumerate().map(marker)));
        let kills = find(&all, may_run).into_iter().zip(&all);
        let mut named: Vec<(u32, Kill)> = kills
            .filter_map(|(kill, report)| Some((report.process.pid?, kill?)))
            .collect();
        named.sort_by_key(|(pid, _)| *pid);
        named
    }

    /// Pids, and whether the evidence names this process alone.
    fn named(markers: &[Marker]) -> Vec<(u32, bool)> {
        let kills = kills(markers).into_iter();
        kills.map(|(pid, kill)| (pid, kill.is_certain())).collect()
    }

    fn one(rss: f64) -> [Marker; 3] {
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
        assert!((kill.rss / MB, kill.is_counted, kill.is_certain()) == (960.0, false, true));
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
    fn a_process_whose_last_marker_precedes_a_rise_of_the_count_of_kills_was_killed() {
        let all = [one(100.0).as_slice(), &[(8, 99.0, "send", 1.0, 50.0)]].concat();
        let (pid, kill) = kills(&all).remove(0);
        assert!(pid == 7 && kill.is_counted && kill.is_certain());
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
            assert_eq!(kill.candidates, ["site-1 TR, pid 3", "site-1 TR, pid 2"]);
        }
        let twice = workers.map(|(pid, t, stage, count, rss)| (pid, t, stage, 2.0 * count, rss));
        assert_eq!(named(&twice), [(2, true), (3, true)]);
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
    fn a_count_that_falls_belongs_to_several_groups_and_names_nobody() {
        let others = [(8, 99.0, "send", 1.0, 50.0), (9, 110.0, "send", 0.0, 50.0)];
        assert_eq!(kills(&[one(100.0).as_slice(), &others].concat()), []);
    }
}
