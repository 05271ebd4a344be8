//! Finds processes that ended without the marker `exit`: those that the kernel most likely killed for lack
//! of memory, and those whose markers stop while others go on.

use flarena_shared::stages::Stage;

use super::between_stages::{is_own, round, rss};
use crate::report::model::Process;

/// The end of a process without the marker `exit`.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    pub cause: Cause,
    /// Time of the last marker.
    pub t: f64,
    /// The last stage of the program, if it has one.
    pub stage: Option<String>,
    pub round: Option<i64>,
    /// RSS at the last marker.
    pub rss: f64,
    /// No other process wrote to its file.
    pub is_alone: bool,
    /// NaN if unknown.
    pub limit: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The kernel counted a kill in the control group after the last marker.
    CountedKill,
    /// The kernel most likely killed it, because it was near its limit.
    NearLimit,
    /// Another signal, `_exit`, or a hang where the list of processes was not read.
    Unknown(Life),
}

/// The process as the list of processes shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It runs here, or it ran elsewhere and its last marker is recent.
    MayRun,
    /// It ran on this machine, and is not in the list.
    Ended,
    /// It ran on another machine or in another container, and has no recent marker.
    Unknown,
}

impl End {
    pub fn is_kill(&self) -> bool {
        self.cause.is_kill()
    }

    /// The word in place of the verdict.
    pub fn name(&self) -> &'static str {
        match self.is_kill() {
            true => "killed",
            false => "stopped",
        }
    }
}

impl Cause {
    fn is_kill(self) -> bool {
        !matches!(self, Cause::Unknown(_))
    }
}

/// A process whose memory comes so near to its limit may be killed at the next allocation.
const NEAR_LIMIT: f64 = 0.9;
/// A process with periodic markers is silent for at most twice its longest silence before: the pauses
/// of a process of constant size double.
const MISSED_PAUSES: f64 = 2.5;

/// `None` for a program that wrote the marker `exit`, became another one by an exec, or may run.
pub fn find<'a>(
    process: &Process,
    life: impl Fn(&Process) -> Life,
    all: impl Iterator<Item = &'a Process> + Clone,
) -> Option<End> {
    if process.has_exited || process.became.is_some() {
        return None;
    }
    let life = life(process);
    if life == Life::MayRun {
        return None;
    }
    let last = process.last_points().max_by_key(|point| point.order)?;
    let cause = kill(process, all.clone())
        .or_else(|| stops(process, life, all.clone()).then_some(Cause::Unknown(life)))?;
    let is_alone = of_same_file(process, all).count() == 1;
    let own = process.last_visits().filter(|(name, _)| is_own(name));
    let stage = own.max_by_key(|(_, point)| point.order);
    Some(End {
        cause,
        t: process.last_time(),
        stage: stage.map(|(name, _)| name.to_owned()),
        round: stage.and_then(|(_, point)| round(point)),
        rss: rss(last),
        is_alone,
        limit: process.cgroup_limit,
    })
}

/// The evidence for a kill: the process ended near its limit, or before the kernel's count of kills rose
/// at another process of `all`.
fn kill<'a>(process: &Process, all: impl Iterator<Item = &'a Process> + Clone) -> Option<Cause> {
    let group = all.filter(|other| other.cgroup_limit == process.cgroup_limit);
    if is_counted(process, group.clone()) {
        return Some(Cause::CountedKill);
    }
    let is_near = process.unreclaimable() >= NEAR_LIMIT * process.cgroup_limit;
    (is_near && !is_forked(process) && !has_outlived_counts(process, group))
        .then_some(Cause::NearLimit)
}

/// A forked worker ends without the marker `exit`, too: Python ends it by `_exit`.
fn is_forked(process: &Process) -> bool {
    process.loaded.is_none()
}

/// True if the markers stop in the middle of a job. Of other processes only those with markers in the same file
/// and at the same time count: they show that the file is complete at this time. A process with a file of its
/// own (`%p`) must be missing from the list of processes.
fn stops<'a>(
    process: &Process,
    life: Life,
    all: impl Iterator<Item = &'a Process> + Clone,
) -> bool {
    if is_forked(process) || process.pid.is_none() {
        return false;
    }
    let end = process.last_time();
    let file = of_same_file(process, all);
    if file.clone().count() == 1 {
        return life == Life::Ended && process.has_rounds;
    }
    // A client or server waits for jobs, and is often stopped by a signal.
    let has_rounds = |other: &Process| other.has_rounds;
    let works = process.has_rounds || !file.clone().any(has_rounds);
    let others = file.filter(|other| other.first_time <= end && other.last_time() > end);
    let silence = MISSED_PAUSES * process.longest_silence();
    // Others wrote markers for longer than this process was ever silent.
    let went_on = others
        .clone()
        .any(|other| other.last_time() > end + silence);
    let has_exited = |other: &Process| other.has_exited;
    let mut workers = others.filter(|other| other.has_rounds || !process.has_rounds);
    // Processes of the same kind exited well, so the job came to its end.
    let job_ended = match life {
        Life::MayRun => false,
        Life::Ended => workers.any(has_exited),
        Life::Unknown => workers.clone().any(has_exited) && workers.all(has_exited),
    };
    let writes_periodically = process.series(Stage::Periodic.name()).is_some();
    works && job_ended || went_on && (writes_periodically || works && life == Life::Ended)
}

fn of_same_file<'a>(
    process: &Process,
    all: impl Iterator<Item = &'a Process> + Clone,
) -> impl Iterator<Item = &'a Process> + Clone {
    let file = process.file;
    all.filter(move |other| other.file == file && other.pid.is_some())
}

/// True if the kernel's count of kills rose after the last marker, by more than the number of
/// processes that ended later without the marker `exit`.
fn is_counted<'a>(process: &Process, group: impl Iterator<Item = &'a Process> + Clone) -> bool {
    let later = || {
        group
            .clone()
            .filter(|other| other.last_time() >= process.last_time())
    };
    let count = later()
        .map(|other| other.oom_kills)
        .fold(f64::NAN, f64::max);
    let may_be_meant = |other: &&Process| {
        other.last_time() > process.last_time() && other.oom_kills < count && !other.has_exited
    };
    count - process.oom_kills > later().filter(may_be_meant).count() as f64
}

/// True if the count of kills is unchanged at a marker so late that the process had ended before.
fn has_outlived_counts<'a>(
    process: &Process,
    mut group: impl Iterator<Item = &'a Process>,
) -> bool {
    let end = process.last_time() + process.longest_silence();
    group.any(|other| other.last_time() > end && other.oom_kills == process.oom_kills)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::{processes, sample, sizes};
    use crate::report::model::{Sample, Size};
    use crate::report::units::MB;

    /// `(pid, seconds, stage, count of kills)`
    type Marker = (u32, f64, &'static str, f64);

    /// Processes that hold so many of 1000 MB. The stage `train` has round 12.
    fn holding(markers: &[Marker], rss: f64) -> Vec<Process> {
        let marker = |(place, &(pid, t, stage, oom_kills)): (usize, &Marker)| Sample {
            pid: Some(pid),
            t: Some(t),
            stage: stage.into(),
            round: (stage == "train").then_some(12),
            cgroup_limit: 1000.0 * MB,
            oom_kills,
            seq: Some(markers[..place].iter().filter(|one| one.0 == pid).count() as u64),
            ..sample(place, sizes(&[(Size::Rss, rss)]))
        };
        processes(markers.iter().enumerate().map(marker))
    }

    fn ends(markers: &[Marker], rss: f64, life: Life) -> Vec<(u32, End)> {
        let all = holding(markers, rss);
        let end = |one: &Process| Some((one.pid?, find(one, |_| life, all.iter())?));
        all.iter().filter_map(end).collect()
    }

    fn causes(markers: &[Marker], rss: f64) -> Vec<(u32, Cause)> {
        let ends = ends(markers, rss, Life::Ended).into_iter();
        ends.map(|(pid, end)| (pid, end.cause)).collect()
    }

    const ONE: [Marker; 3] = [
        (7, 0.0, "load", 0.0),
        (7, 10.0, "train", 0.0),
        (7, 50.0, "periodic", 0.0),
    ];

    #[test]
    fn a_process_that_ends_near_its_limit_without_an_exit_marker_was_killed() {
        assert_eq!(ends(&ONE, 705.0, Life::Unknown), []);
        let (_, found) = ends(&ONE, 950.0, Life::Ended).remove(0);
        assert_eq!(
            (found.stage.as_deref(), found.round),
            (Some("train"), Some(12))
        );
        assert_eq!((found.rss / MB, found.cause), (950.0, Cause::NearLimit));
        assert_eq!(ends(&ONE, 950.0, Life::MayRun), []);
        let exited = [ONE.as_slice(), &[(7, 86.0, "exit", 0.0)]].concat();
        assert_eq!(ends(&exited, 950.0, Life::Ended), []);
    }

    #[test]
    fn a_process_whose_last_marker_precedes_a_rise_of_the_count_of_kills_was_killed() {
        let all = [ONE.as_slice(), &[(8, 99.0, "send", 1.0)]].concat();
        assert_eq!(causes(&all, 100.0), [(7, Cause::CountedKill)]);
    }

    #[test]
    fn a_forked_worker_near_the_limit_was_not_killed_for_lack_of_an_exit_marker() {
        let forked = [
            (1, 0.0, "load", 0.0),
            (2, 1.0, "loaded", 0.0),
            (1, 9.0, "exit", 0.0),
        ];
        assert_eq!(causes(&forked, 950.0), []);
        assert_eq!(causes(&forked, 100.0), []);
    }

    #[test]
    fn one_counted_kill_is_that_of_the_process_that_ended_last() {
        let workers = [
            (1, 0.0, "load", 0.0),
            (2, 1.0, "loaded", 0.0),
            (3, 2.0, "loaded", 0.0),
            (4, 3.0, "load", 0.0),
            (1, 9.0, "send", 1.0),
            (1, 9.5, "exit", 1.0),
        ];
        assert_eq!(causes(&workers, 950.0), [(4, Cause::CountedKill)]);
    }

    #[test]
    fn an_unchanged_count_long_after_the_last_marker_excludes_a_kill() {
        let at = |t: f64| {
            let markers = [
                (1, 0.0, "load", 0.0),
                (2, 1.0, "load", 0.0),
                (1, t, "exit", 0.0),
            ];
            causes(&markers, 950.0)
        };
        assert_eq!(at(30.0), [(2, Cause::NearLimit)]);
        assert_eq!(at(90.0), [(2, Cause::Unknown(Life::Ended))]);
    }

    /// `ONE` beside another process with these markers.
    fn beside(other: &[(f64, &'static str)], life: Life) -> Vec<u32> {
        let begin = [(8, 0.0, "load", 0.0), (8, 9.0, "train", 0.0)];
        let other = other.iter().map(|&(t, stage)| (8, t, stage, 0.0));
        let all: Vec<Marker> = ONE.into_iter().chain(begin).chain(other).collect();
        let found = ends(&all, 100.0, life).into_iter();
        found.map(|(pid, _)| pid).collect()
    }

    #[test]
    fn markers_that_stop_while_others_go_on_show_the_end_of_a_process() {
        for life in [Life::Ended, Life::Unknown] {
            assert!(beside(&[(190.0, "send")], life).is_empty(), "{life:?}");
            assert_eq!(beside(&[(210.0, "send")], life), [7], "{life:?}");
            assert_eq!(beside(&[(60.0, "exit")], life), [7], "{life:?}");
        }
        assert!(beside(&[(210.0, "send")], Life::MayRun).is_empty());
    }

    #[test]
    fn markers_that_all_stop_together_do_not_show_an_end() {
        // The file may have been cut, or the job was stopped by a signal.
        assert!(beside(&[(51.0, "send")], Life::Ended).is_empty());
        assert!(beside(&[], Life::Ended).is_empty());
        assert!(beside(&[(40.0, "exit")], Life::Ended).is_empty());
    }

    #[test]
    fn a_process_with_a_file_of_its_own_has_stopped_if_it_does_not_run_any_more() {
        let found = |life| ends(&ONE, 100.0, life).into_iter().next();
        let (_, end) = found(Life::Ended).unwrap();
        assert!(end.is_alone && end.cause == Cause::Unknown(Life::Ended));
        assert_eq!(found(Life::Unknown), None);
        // A service without rounds is stopped by a signal.
        assert_eq!(ends(&[ONE[0], ONE[2]], 100.0, Life::Ended), []);
    }

    #[test]
    fn a_process_without_rounds_may_be_stopped_by_a_signal_after_the_job() {
        let job = [
            (1, 0.0, "load", 0.0),
            (1, 30.0, "periodic", 0.0),
            (2, 1.0, "load", 0.0),
            (2, 40.0, "train", 0.0),
            (2, 90.0, "exit", 0.0),
        ];
        assert_eq!(causes(&job, 100.0), []);
        let later = [job.as_slice(), &[(2, 190.0, "exit", 0.0)]].concat();
        assert_eq!(causes(&later, 100.0), [(1, Cause::Unknown(Life::Ended))]);
    }

    #[test]
    fn a_program_that_an_exec_replaced_has_not_stopped() {
        let execed = [
            (1, 1.0, "load", 0.0),
            (2, 0.0, "load", 0.0),
            (2, 9.0, "exit", 0.0),
        ];
        let next = Sample {
            pid: Some(1),
            t: Some(5.0),
            seq: Some(0),
            stage: "load".into(),
            round: None,
            ..sample(0, sizes(&[(Size::Rss, 100.0)]))
        };
        let with_exec = |next: Option<Sample<'static>>| {
            let marker = |(seq, (pid, t, stage, _)): (usize, Marker)| Sample {
                pid: Some(pid),
                t: Some(t),
                seq: Some(if stage == "exit" { 1 } else { 0 }),
                stage: stage.into(),
                round: None,
                ..sample(seq, sizes(&[(Size::Rss, 100.0)]))
            };
            let all = processes(execed.into_iter().enumerate().map(marker).chain(next));
            let ends = all
                .iter()
                .filter_map(|one| find(one, |_| Life::Ended, all.iter()));
            ends.map(|end| end.t).collect::<Vec<_>>()
        };
        assert_eq!(with_exec(None), [1.0]);
        assert_eq!(with_exec(Some(next)), [5.0]);
    }
}
