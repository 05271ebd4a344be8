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
    bytes: f64,
    is_end: bool,
}

impl Together {
    /// `None` if no marker has a time.
    pub fn of(reports: &[ProcessReport]) -> Option<Together> {
        let (grouping, names) = names(reports);
        let mut groups = groups(names);
        let group_of = places(&groups, reports.len());
        let mut events = Vec::new();
        let dated = |report: &ProcessReport| report.process.last_time().is_finite();
        let end = reports.iter().map(latest_time);
        let end = end.fold(f64::NAN, f64::max);
        for (member, report) in reports.iter().enumerate() {
            add_events(&mut events, member, report, end);
        }
        // At one moment the sizes come before the ends, so that a last size counts.
        events.sort_by(|a, b| a.t.total_cmp(&b.t).then(a.is_end.cmp(&b.is_end)));
        let start = events.first()?.t;
        let mut sweep = Sweep::new(reports.len(), &group_of, groups.len(), start);
        let mut highest = Highest::new(start, end);
        for (i, event) in events.iter().enumerate() {
            sweep.apply(event);
            let next = events.get(i + 1);
            let is_settled = next.is_none_or(|next| next.t > event.t || next.is_end);
            if is_settled {
                let until = next.map_or(end, |next| next.t);
                highest.note(i, event.t, until, sweep.total());
                sweep.note_peaks(event.t);
            }
        }
        sweep.finish(end);
        for (group, found) in groups.iter_mut().zip(&sweep.found) {
            (group.peak, group.peak_time) = (found.peak, found.peak_time);
            group.mean = found.mean();
            let members = group.members.iter();
            let growth = members.filter_map(|member| reports[*member].growth());
            let growth = growth.map(|slope| slope.per_x).reduce(|a, b| a + b);
            group.growth = growth.unwrap_or(f64::NAN);
        }
        let total = sweep.all.clone();
        let mut replay = Sweep::new(reports.len(), &group_of, groups.len(), start);
        let mut wanted = highest.moments().into_iter().peekable();
        let mut moments = Vec::new();
        for (i, event) in events.iter().enumerate() {
            replay.apply(event);
            if event.t <= total.peak_time && i == highest.peak_event {
                let parts = replay.parts().into_iter();
                groups
                    .iter_mut()
                    .zip(parts)
                    .for_each(|(g, bytes)| g.at_peak = bytes);
            }
            while let Some((_, t)) = wanted.next_if(|(at, _)| *at == i) {
                moments.push(Moment {
                    t,
                    total: replay.total(),
                    parts: replay.parts(),
                });
            }
        }
        if end <= start {
            moments.clear();
        }
        let mut together = Together {
            grouping,
            groups,
            start,
            end,
            peak: total.peak,
            peak_time: total.peak_time,
            mean: total.mean(),
            limit: shared_limit(reports, total.peak, total.peak_time),
            moments,
            kills: kills(reports),
            undated: reports.iter().filter(|report| !dated(report)).count(),
        };
        together.sort();
        Some(together)
    }

    /// Puts the group with the highest peak first.
    fn sort(&mut self) {
        let mut order: Vec<usize> = (0..self.groups.len()).collect();
        let peak = |place: &usize| self.groups[*place].peak;
        order.sort_by(|a, b| peak(b).total_cmp(&peak(a)));
        for moment in &mut self.moments {
            moment.parts = order.iter().map(|place| moment.parts[*place]).collect();
        }
        let mut taken: Vec<Option<Group>> = self.groups.drain(..).map(Some).collect();
        self.groups = order
            .iter()
            .filter_map(|place| taken[*place].take())
            .collect();
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

fn groups(names: Vec<String>) -> Vec<Group> {
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for (member, name) in names.into_iter().enumerate() {
        let place = *known.entry(name.clone()).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Group {
                name,
                members: Vec::new(),
                peak: 0.0,
                peak_time: f64::NAN,
                mean: f64::NAN,
                at_peak: 0.0,
                growth: f64::NAN,
            });
        }
        groups[place].members.push(member);
    }
    groups
}

/// The group of each process.
fn places(groups: &[Group], processes: usize) -> Vec<usize> {
    let mut places = vec![0; processes];
    for (place, group) in groups.iter().enumerate() {
        group
            .members
            .iter()
            .for_each(|member| places[*member] = place);
    }
    places
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

/// The sizes of one process, and its end. `end` is the highest time of all processes.
fn add_events(events: &mut Vec<Event>, member: usize, report: &ProcessReport, end: f64) {
    let process = &report.process;
    let mut points: Vec<&Point> = dated_points(process).collect();
    points.sort_by(|a, b| a.order.epoch.cmp(&b.order.epoch).then(a.t.total_cmp(&b.t)));
    let is_chain = process.processes > 1;
    let has_exited = process.has_exited || report.is_killed();
    let (mut shared, mut pause) = (0.0, MIN_TAIL_SECONDS);
    for (i, point) in points.iter().enumerate() {
        let rss = point.sizes[Size::Rss];
        if !point.sizes[Size::Pss].is_nan() {
            shared = rss - point.sizes[Size::Pss];
        }
        let next = points.get(i + 1);
        let is_last = next.is_none();
        let ends_in_chain =
            next.is_some_and(|next| is_chain && next.order.epoch != point.order.epoch);
        events.push(Event {
            t: point.t,
            member,
            bytes: (rss - shared).max(0.0),
            is_end: false,
        });
        if let Some(next) = next.filter(|_| !ends_in_chain) {
            pause = f64::max(pause, next.t - point.t);
        }
        let tail = match is_last && !has_exited && !is_chain {
            true => pause,
            false => 0.0,
        };
        let runs_on = is_last && tail > 0.0 && point.t + tail >= end;
        if ends_in_chain || is_last && !runs_on {
            events.push(Event {
                t: point.t + tail,
                member,
                bytes: 0.0,
                is_end: true,
            });
        }
    }
}

/// The highest and the mean of a sum.
#[derive(Clone)]
struct Sum {
    now: f64,
    running: usize,
    peak: f64,
    peak_time: f64,
    /// Bytes times seconds, and the seconds in which a process ran.
    area: f64,
    seconds: f64,
    since: f64,
}

impl Sum {
    fn new(start: f64) -> Sum {
        Sum {
            now: 0.0,
            running: 0,
            peak: 0.0,
            peak_time: start,
            area: 0.0,
            seconds: 0.0,
            since: start,
        }
    }

    fn advance(&mut self, t: f64) {
        if self.running > 0 {
            self.area += self.now * (t - self.since);
            self.seconds += t - self.since;
        }
        self.since = t;
    }

    fn note_peak(&mut self, t: f64) {
        if self.now > self.peak {
            (self.peak, self.peak_time) = (self.now, t);
        }
    }

    fn mean(&self) -> f64 {
        match self.seconds > 0.0 {
            true => self.area / self.seconds,
            false => self.peak,
        }
    }
}

/// Applies the events in the order of their time.
struct Sweep<'a> {
    group_of: &'a [usize],
    /// The size of each process that runs.
    sizes: Vec<Option<f64>>,
    found: Vec<Sum>,
    all: Sum,
    /// Groups that changed since the last check for peaks.
    changed: Vec<usize>,
}

impl<'a> Sweep<'a> {
    fn new(processes: usize, group_of: &'a [usize], groups: usize, start: f64) -> Sweep<'a> {
        Sweep {
            group_of,
            sizes: vec![None; processes],
            found: vec![Sum::new(start); groups],
            all: Sum::new(start),
            changed: Vec::new(),
        }
    }

    fn apply(&mut self, event: &Event) {
        let place = self.group_of[event.member];
        let new = (!event.is_end).then_some(event.bytes);
        let old = std::mem::replace(&mut self.sizes[event.member], new);
        for sum in [&mut self.found[place], &mut self.all] {
            sum.advance(event.t);
            sum.now = (sum.now + new.unwrap_or(0.0) - old.unwrap_or(0.0)).max(0.0);
            sum.running = sum.running + usize::from(new.is_some()) - usize::from(old.is_some());
        }
        self.changed.push(place);
    }

    fn note_peaks(&mut self, t: f64) {
        for place in self.changed.drain(..) {
            self.found[place].note_peak(t);
        }
        self.all.note_peak(t);
    }

    fn finish(&mut self, end: f64) {
        self.found.iter_mut().for_each(|sum| sum.advance(end));
        self.all.advance(end);
    }

    fn total(&self) -> f64 {
        self.all.now
    }

    fn parts(&self) -> Vec<f64> {
        self.found.iter().map(|sum| sum.now).collect()
    }
}

/// Finds the event with the highest total in each part of the time.
struct Highest {
    start: f64,
    width: f64,
    /// Event and total of each part.
    best: Vec<Option<(usize, f64)>>,
    peak: f64,
    peak_event: usize,
}

impl Highest {
    fn new(start: f64, end: f64) -> Highest {
        Highest {
            start,
            width: f64::max((end - start) / MOMENTS as f64, 1e-9),
            best: vec![None; MOMENTS],
            peak: f64::NEG_INFINITY,
            peak_event: 0,
        }
    }

    /// The total after this event holds from `t` until another time.
    fn note(&mut self, event: usize, t: f64, until: f64, total: f64) {
        if total > self.peak {
            (self.peak, self.peak_event) = (total, event);
        }
        let place = |t: f64| (((t - self.start) / self.width) as usize).min(MOMENTS - 1);
        for part in &mut self.best[place(t)..=place(until)] {
            if part.is_none_or(|(_, before)| total > before) {
                *part = Some((event, total));
            }
        }
    }

    /// The event of each part with the part's time, in ascending order of the events.
    fn moments(&self) -> Vec<(usize, f64)> {
        let parts = self.best.iter().enumerate();
        let time = |part: usize| self.start + part as f64 * self.width;
        parts
            .filter_map(|(part, best)| Some((best.as_ref()?.0, time(part))))
            .collect()
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
    let stages = process.stages.iter();
    let points = stages.flat_map(|(_, series)| series.points());
    let known = points.filter(|p| p.t <= t && !p.sizes[Size::Cgroup].is_nan());
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
                cgroup_limit: 1000.0 * MB,
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
        let marker = |pid: u32, group: f64, limit: f64| Sample {
            pid: Some(pid),
            cgroup_limit: limit * MB,
            ..sample(0, sizes(&[(Size::Rss, 190.0), (Size::Cgroup, group)]))
        };
        let limited = marker(1, 190.0, 200.0);
        let all = Together::of(&analyse(processes([limited, marker(2, 5000.0, f64::NAN)])));
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
