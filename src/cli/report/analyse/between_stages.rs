//! Finds what happened after a stage of the program: growth that only periodic markers show, and the
//! size at which the kernel most likely killed the process.

use flarena_shared::stages::Stage;

use crate::report::model::{Point, Process, Size};

/// Growth after a marker of the program, up to a size that none of its markers shows.
#[derive(Clone, Debug, PartialEq)]
pub struct GrowthInside {
    pub stage: String,
    pub round: Option<i64>,
    pub bytes: f64,
    pub seconds: f64,
    /// A later marker of the program is lower.
    pub has_fallen: bool,
}

/// The highest RSS of a process, which the kernel counted and no marker shows.
#[derive(Clone, Debug, PartialEq)]
pub struct HiddenPeak {
    /// The next marker.
    pub stage: String,
    pub round: Option<i64>,
    pub rss: f64,
}

/// The end of a process that the kernel most likely killed for lack of memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Kill {
    /// The last stage of the program, if it has one.
    pub stage: Option<String>,
    pub round: Option<i64>,
    /// RSS at the last marker.
    pub rss: f64,
    /// NaN if unknown.
    pub limit: f64,
    /// The kernel's count of kills in the control group rose after the last marker.
    pub is_counted: bool,
}

/// A process whose memory comes so near to its limit may be killed at the next allocation.
const NEAR_LIMIT: f64 = 0.9;
/// Smaller growth above the markers of the program is not worth a sentence.
const MIN_GROWTH_SHARE: f64 = 0.05;
const MIN_GROWTH_BYTES: f64 = (16 << 20) as f64;

/// The largest growth after a stage. `None` if the program's own markers show the peak, too.
pub fn growth_inside(process: &Process) -> Option<GrowthInside> {
    let mut marks: Vec<(&str, &Point)> = own_marks(process).collect();
    marks.sort_by_key(|(_, point)| point.order);
    let highest = marks
        .iter()
        .map(|(_, point)| rss(point))
        .fold(f64::NAN, f64::max);
    let least = worth_a_sentence(highest);
    let periodic = process.series(Stage::Periodic.name())?.points().iter();
    let grown = periodic.filter(|point| rss(point) > least);
    let growth = grown.filter_map(|point| {
        let before = marks.partition_point(|(_, mark)| mark.order < point.order);
        let (stage, mark) = marks[..before].last()?;
        Some(GrowthInside {
            has_fallen: before < marks.len(),
            stage: (*stage).to_owned(),
            round: round(mark),
            bytes: rss(point) - rss(mark),
            seconds: point.t - mark.t,
        })
    });
    growth.max_by(|a, b| a.bytes.total_cmp(&b.bytes))
}

/// `None` if a marker shows about as much.
pub fn hidden_peak(process: &Process) -> Option<HiddenPeak> {
    let (stage, round) = process.peak_before.clone()?;
    let shown = process.stages.iter().map(|(_, series)| series.peak_rss());
    let is_hidden = process.peak_rss > worth_a_sentence(shown.fold(f64::NAN, f64::max));
    is_hidden.then_some(HiddenPeak {
        stage,
        round,
        rss: process.peak_rss,
    })
}

/// A size that differs enough from the highest one of the markers.
fn worth_a_sentence(highest: f64) -> f64 {
    highest + (highest * MIN_GROWTH_SHARE).max(MIN_GROWTH_BYTES)
}

/// The end of a process without an `exit` marker that ended near its limit, or before the kernel's
/// count of kills rose at another process of `all`.
pub fn kill<'a>(process: &Process, all: impl Iterator<Item = &'a Process> + Clone) -> Option<Kill> {
    if process.has_exited() {
        return None;
    }
    let last = process.last_points().max_by_key(|point| point.order)?;
    let group = all.filter(|other| other.cgroup_limit == process.cgroup_limit);
    let is_counted = is_counted(process, group.clone());
    // A forked worker ends without the marker, too: Python ends it by `_exit`.
    let is_forked = process.loaded.is_none();
    let is_near = process.unreclaimable() >= NEAR_LIMIT * process.cgroup_limit;
    if !is_counted && (!is_near || is_forked || has_outlived_counts(process, group)) {
        return None;
    }
    let own = process.last_visits().filter(|(name, _)| is_own(name));
    let stage = own.max_by_key(|(_, point)| point.order);
    Some(Kill {
        stage: stage.map(|(name, _)| name.to_owned()),
        round: stage.and_then(|(_, point)| round(point)),
        rss: rss(last),
        limit: process.cgroup_limit,
        is_counted,
    })
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
        other.last_time() > process.last_time() && other.oom_kills < count && !other.has_exited()
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

/// The points of the program's stages. `load` is the library's, but begins the time of the program.
fn own_marks(process: &Process) -> impl Iterator<Item = (&str, &Point)> {
    let stages = process.stages.iter();
    let own = stages.filter(|(name, _)| is_own(name));
    own.flat_map(|(name, series)| series.points().iter().map(|point| (&**name, point)))
}

fn is_own(stage: &str) -> bool {
    stage != Stage::Periodic.name()
}

fn rss(point: &Point) -> f64 {
    point.peak.max(point.sizes[Size::Rss])
}

fn round(point: &Point) -> Option<i64> {
    point.round.is_finite().then_some(point.round as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::{processes, sample, sizes};
    use crate::report::model::Sample;
    use crate::report::units::MB;

    /// `(seconds, stage, RSS in MB)`
    fn course<'a>(markers: &'a [(f64, &'a str, f64)]) -> impl Iterator<Item = Sample<'a>> {
        markers
            .iter()
            .enumerate()
            .map(|(seq, &(t, stage, rss))| Sample {
                t: Some(t),
                stage: stage.into(),
                round: (stage == "train").then_some(12),
                cgroup_limit: 1000.0 * MB,
                oom_kills: 0.0,
                ..sample(seq, sizes(&[(Size::Rss, rss)]))
            })
    }

    const GROWS: [(f64, &str, f64); 4] = [
        (0.0, "load", 5.0),
        (10.0, "train", 15.0),
        (50.0, "periodic", 415.0),
        (80.0, "periodic", 705.0),
    ];

    #[test]
    fn growth_after_the_only_stage_is_found_with_its_duration() {
        let found = growth_inside(&processes(course(&GROWS))[0]).unwrap();
        assert_eq!((&*found.stage, found.round), ("train", Some(12)));
        assert_eq!((found.bytes / MB, found.seconds), (690.0, 70.0));
        assert!(!found.has_fallen);
    }

    #[test]
    fn growth_that_a_later_stage_shows_is_not_repeated() {
        let after = |rss| {
            let markers = [GROWS.as_slice(), &[(90.0, "send", rss)]].concat();
            growth_inside(&processes(course(&markers))[0])
        };
        assert_eq!(after(700.0), None);
        assert!(after(20.0).is_some_and(|growth| growth.has_fallen));
    }

    #[test]
    fn a_peak_between_two_markers_is_found_before_the_later_one() {
        let peak_of = |peaks: [f64; 3]| {
            let marker = |(seq, peak): (usize, f64)| Sample {
                peak_rss: peak * MB,
                ..sample(seq, sizes(&[(Size::Rss, 59.0)]))
            };
            hidden_peak(&processes(peaks.into_iter().enumerate().map(marker))[0])
        };
        let found = peak_of([59.0, 539.0, 539.0]).unwrap();
        assert_eq!(
            (&*found.stage, found.round, found.rss / MB),
            ("send", Some(1), 539.0)
        );
        assert_eq!(peak_of([59.0, 60.0, 60.0]), None);
    }

    fn kill_of(markers: &[(f64, &str, f64)]) -> Option<Kill> {
        let processes = processes(course(markers));
        kill(&processes[0], processes.iter())
    }

    #[test]
    fn a_process_that_ends_near_its_limit_without_an_exit_marker_was_killed() {
        assert_eq!(kill_of(&GROWS), None, "705 of 1000 MB");
        let near = [GROWS.as_slice(), &[(85.0, "periodic", 950.0)]].concat();
        let found = kill_of(&near).unwrap();
        assert_eq!(
            (found.stage.as_deref(), found.round),
            (Some("train"), Some(12))
        );
        assert_eq!((found.rss / MB, found.is_counted), (950.0, false));
        let exited = [near.as_slice(), &[(86.0, "exit", 950.0)]].concat();
        assert_eq!(kill_of(&exited), None);
    }

    #[test]
    fn a_process_whose_last_marker_precedes_a_rise_of_the_count_of_kills_was_killed() {
        let other = Sample {
            pid: Some(8),
            t: Some(99.0),
            oom_kills: 1.0,
            ..course(&[(99.0, "send", 100.0)]).next().unwrap()
        };
        let processes = processes(course(&GROWS).chain([other]));
        let counted = |process| kill(process, processes.iter()).is_some_and(|kill| kill.is_counted);
        let pids: Vec<_> = processes
            .iter()
            .filter(|process| counted(process))
            .map(|process| process.pid)
            .collect();
        assert_eq!(pids, [Some(7)]);
    }

    /// `(pid, seconds, stage, count of kills)`, near the limit.
    type Near = (u32, f64, &'static str, f64);

    fn killed_of(markers: &[Near]) -> Vec<u32> {
        let marker = |(place, &(pid, t, stage, oom_kills)): (usize, &Near)| Sample {
            pid: Some(pid),
            t: Some(t),
            stage: stage.into(),
            cgroup_limit: 1000.0 * MB,
            oom_kills,
            seq: Some(markers[..place].iter().filter(|one| one.0 == pid).count() as u64),
            ..sample(place, sizes(&[(Size::Rss, 950.0)]))
        };
        let all = processes(markers.iter().enumerate().map(marker));
        let killed = all.iter().filter(|one| kill(one, all.iter()).is_some());
        killed.filter_map(|one| one.pid).collect()
    }

    #[test]
    fn a_forked_worker_near_the_limit_was_not_killed_for_lack_of_an_exit_marker() {
        let forked = [
            (1, 0.0, "load", 0.0),
            (2, 1.0, "loaded", 0.0),
            (1, 9.0, "exit", 0.0),
        ];
        assert!(killed_of(&forked).is_empty());
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
        assert_eq!(killed_of(&workers), [4]);
    }

    #[test]
    fn an_unchanged_count_long_after_the_last_marker_excludes_a_kill() {
        let at = |t: f64| {
            [
                (1, 0.0, "load", 0.0),
                (2, 1.0, "load", 0.0),
                (1, t, "exit", 0.0),
            ]
        };
        assert_eq!(killed_of(&at(30.0)), [2]);
        assert!(killed_of(&at(90.0)).is_empty());
    }
}
