//! The memory of all processes together, over the time of day.
//!
//! A process holds the size of one marker until the next. Pages that processes share since a fork
//! count once, as far as the markers know the PSS.

use std::collections::HashMap;

use super::ProcessReport;
use crate::report::model::{Point, Process, Size};

/// Moments of the chart. Each is the one with the highest total in its part of the time.
const MOMENTS: usize = 400;
/// A process without a marker `exit` is counted for at least so long after its last marker.
const MIN_TAIL_SECONDS: f64 = 60.0;
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
    /// The highest sum, its time, and the mean of the sum while a process runs.
    pub peak: f64,
    pub peak_time: f64,
    pub mean: f64,
    /// The part of the highest total.
    pub at_peak: f64,
    /// Bytes per round of its processes that grow; NaN if none grows.
    pub growth: f64,
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

struct Event {
    t: f64,
    member: usize,
    /// `None` at the end of the process.
    bytes: Option<f64>,
}

impl Together {
    /// `None` if no marker has a time.
    pub fn of(reports: &[ProcessReport]) -> Option<Together> {
        let (grouping, names) = names(reports);
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut members: Vec<Vec<usize>> = Vec::new();
        for (member, name) in names.iter().enumerate() {
            let place = *places.entry(name).or_insert(members.len());
            members.resize(members.len().max(place + 1), Vec::new());
            members[place].push(member);
        }
        let group_of: Vec<usize> = names.iter().map(|name| places[&**name]).collect();
        let end = reports.iter().map(latest_time).fold(f64::NAN, f64::max);
        let (all, curves) = curves(&events(reports, end), &group_of, members.len())?;
        let peak = all.peak();
        let mut groups: Vec<(Group, Curve)> = Vec::new();
        for (members, curve) in members.into_iter().zip(curves) {
            let growth = members
                .iter()
                .filter_map(|member| reports[*member].growth());
            let growth = growth.map(|slope| slope.per_x).reduce(|a, b| a + b);
            let highest = curve.peak();
            let group = Group {
                name: members
                    .first()
                    .map_or(String::new(), |first| names[*first].clone()),
                members,
                peak: highest.bytes,
                peak_time: highest.t,
                mean: curve.mean(end),
                at_peak: curve.at(peak.step),
                growth: growth.unwrap_or(f64::NAN),
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
            moments: all.highest_of_parts(end).map(moment).collect(),
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

/// The highest time of a process, which is not the last one if its clock was set back.
fn latest_time(report: &ProcessReport) -> f64 {
    let times = dated_points(&report.process).map(|point| point.t);
    times.fold(report.process.last_time(), f64::max)
}

fn dated_points(process: &Process) -> impl Iterator<Item = &Point> {
    let stages = process.stages.iter();
    let points = stages.flat_map(|(_, series)| series.points().iter().chain(series.joined_last()));
    points.filter(|point| !point.t.is_nan())
}

/// The sizes and the ends of all processes in the order of time. `end` is the highest time.
fn events(reports: &[ProcessReport], end: f64) -> Vec<Event> {
    let mut events = Vec::new();
    for (member, report) in reports.iter().enumerate() {
        add_events(&mut events, member, report, end);
    }
    // At one moment the sizes come before the ends, so that a last size counts.
    events.sort_by(|a, b| {
        a.t.total_cmp(&b.t)
            .then(a.bytes.is_none().cmp(&b.bytes.is_none()))
    });
    events
}

fn add_events(events: &mut Vec<Event>, member: usize, report: &ProcessReport, end: f64) {
    let process = &report.process;
    let mut points: Vec<&Point> = dated_points(process).collect();
    points.sort_by(|a, b| a.order.epoch.cmp(&b.order.epoch).then(a.t.total_cmp(&b.t)));
    let is_chain = process.processes > 1;
    let has_exited = process.has_exited || report.is_killed();
    let (mut shared, mut pause) = (0.0, MIN_TAIL_SECONDS);
    for (i, point) in points.iter().enumerate() {
        let (t, rss, pss) = (point.t, point.sizes[Size::Rss], point.sizes[Size::Pss]);
        if !pss.is_nan() {
            shared = rss - pss;
        }
        let bytes = Some((rss - shared).max(0.0));
        events.push(Event { t, member, bytes });
        let ends_at = match points.get(i + 1) {
            Some(next) if is_chain && next.order.epoch != point.order.epoch => Some(t),
            Some(next) => {
                pause = f64::max(pause, next.t - t);
                None
            }
            None if has_exited || is_chain => Some(t),
            None => Some(t + pause).filter(|ends_at| *ends_at < end),
        };
        events.extend(ends_at.map(|t| Event {
            t,
            member,
            bytes: None,
        }));
    }
}

/// A sum over time.
#[derive(Clone, Default)]
struct Curve {
    now: f64,
    running: usize,
    levels: Vec<Level>,
}

/// The sum from one step of the sweep on, and how many of its processes run.
#[derive(Clone)]
struct Level {
    step: usize,
    t: f64,
    bytes: f64,
    running: usize,
}

/// The sum of all processes, and those of the groups: one sweep over the events. `None` without an event.
fn curves(events: &[Event], group_of: &[usize], groups: usize) -> Option<(Curve, Vec<Curve>)> {
    // The last curve is that of all.
    let mut curves = vec![Curve::default(); groups + 1];
    let mut sizes = vec![None; group_of.len()];
    let mut changed = Vec::new();
    for (step, event) in events.iter().enumerate() {
        let old = std::mem::replace(&mut sizes[event.member], event.bytes);
        for place in [group_of[event.member], groups] {
            curves[place].change(old, event.bytes);
            changed.push(place);
        }
        let next = events.get(step + 1);
        if next.is_none_or(|next| next.t > event.t || next.bytes.is_none()) {
            changed
                .drain(..)
                .for_each(|place| curves[place].add_level(step, event.t));
        }
    }
    let all = curves.pop().filter(|all| !all.levels.is_empty())?;
    Some((all, curves))
}

impl Curve {
    fn change(&mut self, old: Option<f64>, new: Option<f64>) {
        self.now = (self.now + new.unwrap_or(0.0) - old.unwrap_or(0.0)).max(0.0);
        self.running = self.running + usize::from(new.is_some()) - usize::from(old.is_some());
    }

    fn add_level(&mut self, step: usize, t: f64) {
        let (bytes, running) = (self.now, self.running);
        self.levels.push(Level {
            step,
            t,
            bytes,
            running,
        });
    }

    /// The first of the highest levels.
    fn peak(&self) -> Level {
        const NONE: Level = Level {
            step: 0,
            t: f64::NAN,
            bytes: 0.0,
            running: 0,
        };
        let higher = |a: Level, b: &Level| {
            if a.t.is_nan() || b.bytes > a.bytes {
                b.clone()
            } else {
                a
            }
        };
        self.levels.iter().fold(NONE, higher)
    }

    /// The levels with the time until each holds.
    fn spans(&self, end: f64) -> impl Iterator<Item = (&Level, f64)> {
        let until = self.levels.iter().skip(1).map(|next| next.t).chain([end]);
        self.levels.iter().zip(until)
    }

    /// The mean while a process runs.
    fn mean(&self, end: f64) -> f64 {
        let running = self.spans(end).filter(|(level, _)| level.running > 0);
        let (area, seconds) = running.fold((0.0, 0.0), |(area, seconds), (level, until)| {
            let length = until - level.t;
            (area + level.bytes * length, seconds + length)
        });
        if seconds > 0.0 {
            area / seconds
        } else {
            self.peak().bytes
        }
    }

    /// The sum after a step.
    fn at(&self, step: usize) -> f64 {
        let count = self.levels.partition_point(|level| level.step <= step);
        self.levels[..count].last().map_or(0.0, |level| level.bytes)
    }

    /// The start of each part of the time, with the highest level in it. None if the time has no length.
    fn highest_of_parts(&self, end: f64) -> impl Iterator<Item = (f64, &Level)> {
        let start = self.levels[0].t;
        let width = (end - start) / MOMENTS as f64;
        let place = |t: f64| (((t - start) / width) as usize).min(MOMENTS - 1);
        let mut highest: Vec<Option<&Level>> = vec![None; MOMENTS];
        for (level, until) in self.spans(end).filter(|_| width > 0.0) {
            for part in &mut highest[place(level.t)..=place(until)] {
                *part = part
                    .filter(|before| before.bytes >= level.bytes)
                    .or(Some(level));
            }
        }
        let parts = highest.into_iter().enumerate();
        parts.filter_map(move |(part, level)| Some((start + part as f64 * width, level?)))
    }
}

/// The limit that all processes name, if the control group holds most of their sum at its peak.
fn shared_limit(reports: &[ProcessReport], peak: f64, t: f64) -> f64 {
    let limits = reports.iter().map(|report| report.process.cgroup_limit);
    let mut limits = limits.filter(|limit| !limit.is_nan());
    let Some(limit) = limits.next() else {
        return f64::NAN;
    };
    let is_one = limits.all(|other| other == limit);
    let limited = reports.iter().map(|report| &report.process);
    let limited = limited.filter(|process| !process.cgroup_limit.is_nan());
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
    fn the_growth_of_a_site_is_that_of_its_processes_that_grow() {
        let sites = [(1, "a", 2.0), (2, "a", 0.0), (3, "a", 3.0), (4, "b", 0.0)];
        let row = |i: u32| {
            let rows = sites.map(|(pid, site, growth)| {
                let rss = 100.0 + growth * f64::from(i);
                (pid, site, 10.0 * f64::from(i), "send", rss)
            });
            rows.into_iter()
        };
        let all = together(&(0..30).flat_map(row).collect::<Vec<Row>>());
        // Four processes share the round numbers.
        assert!((all.groups[0].growth / MB - 5.0 / 4.0).abs() < 0.1);
        assert!(all.groups[1].growth.is_nan());
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
