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
    let worth_a_sentence = highest + (highest * MIN_GROWTH_SHARE).max(MIN_GROWTH_BYTES);
    let periodic = process.series(Stage::Periodic.name())?.points().iter();
    let grown = periodic.filter(|point| rss(point) > worth_a_sentence);
    let growth = grown.filter_map(|point| {
        let before = marks.partition_point(|(_, mark)| mark.order < point.order);
        let (stage, mark) = marks[..before].last()?;
        Some(GrowthInside {
            stage: (*stage).to_owned(),
            round: round(mark),
            bytes: rss(point) - rss(mark),
            seconds: point.t - mark.t,
        })
    });
    growth.max_by(|a, b| a.bytes.total_cmp(&b.bytes))
}

/// The end of a process without an `exit` marker that ended near its limit, or before the kernel's
/// count of kills rose at another process of `all`.
pub fn kill<'a>(process: &Process, mut all: impl Iterator<Item = &'a Process>) -> Option<Kill> {
    if process.series(Stage::Exit.name()).is_some() {
        return None;
    }
    let last = process.last_points().max_by_key(|point| point.order)?;
    let is_counted = all.any(|other| {
        other.cgroup_limit == process.cgroup_limit
            && other.last_time() >= process.last_time()
            && other.oom_kills > process.oom_kills
    });
    let is_near = process.unreclaimable() >= NEAR_LIMIT * process.cgroup_limit;
    if !is_counted && !is_near {
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
    }

    #[test]
    fn growth_that_a_later_stage_shows_is_not_repeated() {
        let markers = [GROWS.as_slice(), &[(90.0, "send", 700.0)]].concat();
        assert_eq!(growth_inside(&processes(course(&markers))[0]), None);
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
}
