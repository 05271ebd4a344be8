//! The memory of all processes together, over the time of day.
//!
//! A process holds the size of one marker until the next. Pages that processes share since a fork
//! count once, as far as the markers know the PSS.

use std::collections::HashMap;

use super::sweep::{sweep, visits, Curve, Level, Span};
use super::ProcessReport;
use crate::report::model::{Process, Size};

/// Moments of the chart. Each is the one with the highest total in its part of the time.
const MOMENTS: usize = 400;
/// Processes share a control group if it holds at least this share of their sum.
const SHARED_GROUP: f64 = 0.8;

/// What the layers of the sum are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    Sites,
    /// There is one site only.
    Processes,
}

/// The processes of one site, or one process.
pub struct Group {
    pub name: String,
    /// Places in the list of reports.
    pub members: Vec<usize>,
    /// The highest sum, and the mean of the sum while a process runs.
    pub peak: f64,
    pub mean: f64,
    /// The part of the highest total.
    pub at_peak: f64,
}

pub struct Moment {
    pub t: f64,
    pub total: f64,
    /// By group.
    pub parts: Vec<f64>,
}

pub struct Together {
    pub grouping: Grouping,
    /// The group with the highest peak first.
    pub groups: Vec<Group>,
    /// Seconds since 1970.
    pub start: f64,
    pub end: f64,
    pub peak: f64,
    pub peak_time: f64,
    pub mean: f64,
    /// The memory limit that all processes share; NaN if there is none.
    pub limit: f64,
    /// Moments at equal distances; empty if all markers have the same time.
    pub moments: Vec<Moment>,
    /// Time and name of each process that the kernel most likely killed.
    pub kills: Vec<(f64, String)>,
    /// Processes without times, which are not counted.
    pub undated: usize,
}

impl Together {
    /// `None` if no marker has a time.
    pub fn of(reports: &[ProcessReport]) -> Option<Together> {
        let (grouping, names) = names(reports);
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut members: Vec<Vec<usize>> = Vec::new();
        let mut group_of = Vec::with_capacity(names.len());
        for (member, name) in names.iter().enumerate() {
            let place = *places.entry(name).or_insert(members.len());
            if place == members.len() {
                members.push(Vec::new());
            }
            members[place].push(member);
            group_of.push(place);
        }
        let (spans, end) = spans(reports);
        let (all, curves) = sweep(&spans, &group_of, |open| open.last().copied())?;
        let peak = all.peak()?;
        let mut groups: Vec<(Group, Curve)> = Vec::new();
        for (members, curve) in members.into_iter().zip(curves) {
            let group = Group {
                name: names[members[0]].clone(),
                members,
                peak: curve.peak().map_or(0.0, |level| level.bytes),
                mean: curve.mean(end),
                at_peak: curve.at(peak.step),
            };
            groups.push((group, curve));
        }
        groups.sort_by(|(a, _), (b, _)| b.peak.total_cmp(&a.peak));
        let moment = |(t, highest): (f64, &Level)| Moment {
            t,
            total: highest.bytes,
            parts: groups
                .iter()
                .map(|(_, curve)| curve.at(highest.step))
                .collect(),
        };
        let is_dated = |report: &&ProcessReport| report.process.last_time().is_finite();
        Some(Together {
            grouping,
            start: all.levels[0].t,
            end,
            peak: peak.bytes,
            peak_time: peak.t,
            mean: all.mean(end),
            limit: shared_limit(reports, peak.bytes, peak.t),
            moments: all.highest_of_parts(MOMENTS, end).map(moment).collect(),
            kills: kills(reports),
            undated: reports.len() - reports.iter().filter(is_dated).count(),
            groups: groups.into_iter().map(|(group, _)| group).collect(),
        })
    }
}

/// The name of the group of each process.
fn names(reports: &[ProcessReport]) -> (Grouping, Vec<String>) {
    let sites: Vec<String> = reports.iter().map(ProcessReport::site_or_name).collect();
    if sites.iter().any(|name| *name != sites[0]) {
        return (Grouping::Sites, sites);
    }
    let process = |report: &ProcessReport| format!("{} {}", report.process_name(), report.pid());
    (Grouping::Processes, reports.iter().map(process).collect())
}

fn kills(reports: &[ProcessReport]) -> Vec<(f64, String)> {
    let killed = reports.iter().filter(|report| report.is_killed());
    let named = killed.map(|report| (report.process.last_time(), report.full_name()));
    named.filter(|(t, _)| t.is_finite()).collect()
}

/// A process holds the size of a marker until the next one. Returns the highest time, too, which is not the last one if a
/// clock was set back.
fn spans(reports: &[ProcessReport]) -> (Vec<Span>, f64) {
    let courses: Vec<_> = reports.iter().map(visits).collect();
    let times = courses.iter().flat_map(|(visits, _)| visits);
    let times = times.map(|visit| visit.point.t);
    let last = reports.iter().map(|report| report.process.last_time());
    let end = times.chain(last).fold(f64::NAN, f64::max);
    let courses = courses.iter().enumerate();
    let spans = courses.flat_map(|(member, (visits, tail))| {
        visits.iter().map(move |visit| {
            let t = visit.point.t;
            Span {
                member,
                begin: t,
                end: visit.after.unwrap_or((t + tail).min(end)),
                bytes: (visit.point.sizes[Size::Rss] - visit.shared).max(0.0),
            }
        })
    });
    (spans.collect(), end)
}

/// The limit that all processes name, if the control group holds most of their sum at its peak.
fn shared_limit(reports: &[ProcessReport], peak: f64, t: f64) -> f64 {
    let all = reports.iter().map(|report| &report.process);
    let limited = all.filter(|process| !process.cgroup_limit.is_nan());
    let mut limits = limited.clone().map(|process| process.cgroup_limit);
    let limit = limits.next().unwrap_or(f64::NAN);
    let is_one = limits.all(|other| other == limit);
    let group = limited.map(|process| group_at(process, t));
    let holds_all = group.fold(f64::NAN, f64::max) >= SHARED_GROUP * peak;
    match is_one && (holds_all || reports.len() == 1) {
        true => limit,
        false => f64::NAN,
    }
}

/// The memory of the control group at the last marker up to a time; NaN if unknown.
fn group_at(process: &Process, t: f64) -> f64 {
    let known = process
        .points()
        .filter(|p| p.t <= t && !p.sizes[Size::Cgroup].is_nan());
    let last = known.max_by(|a, b| a.t.total_cmp(&b.t));
    last.map_or(f64::NAN, |point| point.sizes[Size::Cgroup])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::analyse;
    use crate::report::analyse::fixtures::{processes, sample, sizes};
    use crate::report::model::Sample;
    use crate::report::units::MB;

    /// `(pid, site, seconds, stage, RSS in MB)`
    type Row = (u32, &'static str, f64, &'static str, f64);

    fn together(rows: &[Row]) -> Together {
        let marker = |(seq, row): (usize, &Row)| {
            let (pid, site, t, stage, rss) = *row;
            Sample {
                pid: Some(pid),
                site: Some(site.into()),
                t: Some(t),
                stage: stage.into(),
                cgroup_limit: Some(1000.0 * MB),
                ..sample(seq, sizes(&[(Size::Rss, rss), (Size::Cgroup, 400.0)]))
            }
        };
        let samples = rows.iter().enumerate().map(marker);
        Together::of(&analyse(processes(samples))).unwrap()
    }

    const TWO_SITES: [Row; 6] = [
        (1, "a", 0.0, "load", 100.0),
        (2, "b", 10.0, "load", 50.0),
        (1, "a", 20.0, "send", 300.0),
        (2, "b", 30.0, "exit", 50.0),
        (3, "b", 31.0, "load", 20.0),
        (1, "a", 40.0, "exit", 100.0),
    ];

    #[test]
    fn the_peak_is_that_of_the_sum_and_not_the_sum_of_the_peaks() {
        let all = together(&TWO_SITES);
        assert_eq!((all.peak / MB, all.peak_time), (350.0, 20.0));
        assert_eq!((all.start, all.end, all.limit / MB), (0.0, 40.0, 1000.0));
        let groups: Vec<_> = all.groups.iter().map(|g| (&*g.name, g.peak / MB)).collect();
        assert_eq!(groups, [("a", 300.0), ("b", 50.0)]);
        assert_eq!(all.groups[1].at_peak / MB, 50.0);
        assert_eq!(all.groups[0].mean / MB, 200.0);
        let highest = all.moments.iter().map(|m| m.total).fold(0.0, f64::max);
        assert_eq!(highest / MB, 350.0);
    }

    #[test]
    fn a_clock_that_goes_back_to_the_start_leaves_the_later_times_on_the_chart() {
        let all = together(&[
            (1, "a", 100.0, "load", 100.0),
            (1, "a", 200.0, "send", 300.0),
            (1, "a", 100.0, "exit", 100.0),
        ]);
        assert_eq!((all.start, all.end), (100.0, 200.0));
        assert_eq!((all.peak / MB, all.peak_time), (300.0, 200.0));
    }

    #[test]
    fn a_pss_that_was_read_after_rss_had_grown_adds_no_memory() {
        let marker = |seq, pss: f64| {
            let known = [(Size::Rss, 100.0), (Size::Pss, pss)];
            sample(seq, sizes(&known))
        };
        let all = Together::of(&analyse(processes([marker(0, 60.0), marker(1, 120.0)])));
        assert_eq!(all.unwrap().peak / MB, 100.0);
    }

    #[test]
    fn the_limit_is_not_drawn_for_processes_in_other_control_groups() {
        let row = |i: u32| (i % 4 + 1, "a", f64::from(i), "send", 390.0);
        let rows: Vec<Row> = (0..8).map(row).collect();
        assert!(together(&rows).limit.is_nan());
    }

    #[test]
    fn the_limit_of_one_process_is_not_that_of_processes_without_a_limit() {
        let marker = |pid: u32, group: f64, limit: Option<f64>| Sample {
            pid: Some(pid),
            cgroup_limit: limit.map(|limit| limit * MB),
            ..sample(0, sizes(&[(Size::Rss, 190.0), (Size::Cgroup, group)]))
        };
        let limited = marker(1, 190.0, Some(200.0));
        let all = Together::of(&analyse(processes([limited, marker(2, 5000.0, None)])));
        assert!(all.unwrap().limit.is_nan());
    }

    #[test]
    fn one_site_is_divided_into_its_processes() {
        let rows = TWO_SITES.map(|(pid, _, t, stage, rss)| (pid, "a", t, stage, rss));
        let all = together(&rows);
        assert_eq!(all.grouping, Grouping::Processes);
        assert_eq!((all.groups.len(), &*all.groups[0].name), (3, "TR 1"));
    }
}
