//! The memory of processes together, over the time of day.
//!
//! A process holds the size of one marker until the next. Pages that processes share since a fork
//! count once, as far as the markers know the PSS.

use std::collections::BTreeMap;

use super::Finding;
use crate::report::model::{Point, Process, Series, Size, PEAK_STAGE};

/// Moments of the chart. Each is the one with the highest total in its part of the time.
const MOMENTS: usize = 240;
/// Groups that are listed beside one more, which may have all others.
const LISTED_GROUPS: usize = 7;

/// The processes of one site, or one process if there is one site only. The last of many groups has all others.
pub struct Group {
    pub name: String,
    pub peak: f64,
    changes: Vec<Change>,
}

impl Group {
    fn of((name, changes): (String, Vec<Change>)) -> Group {
        let alone = Timeline::of([&changes], f64::NAN);
        Group {
            name,
            peak: alone.map_or(0.0, |alone| alone.sum().peak),
            changes,
        }
    }
}

/// A time, and the memory of each group then.
type Moment = (f64, Vec<f64>);

pub struct Together {
    /// The group with the highest peak first.
    pub groups: Vec<Group>,
    /// Seconds since 1970.
    pub start: f64,
    pub sum: Sum,
    /// The memory limit that all processes share.
    pub limit: Option<f64>,
    /// Moments at equal distances from start to end; empty if all markers have the same time.
    pub moments: Vec<Moment>,
    /// Time and name of each process that the kernel most likely killed.
    pub kills: Vec<(f64, String)>,
    /// Processes without times, which are not counted.
    pub undated: usize,
}

/// The sum of some processes. `None` without times.
pub fn sum_of<'a>(findings: impl IntoIterator<Item = &'a Finding<'a>>) -> Option<Sum> {
    let all: Vec<Change> = findings.into_iter().flat_map(held).collect();
    Some(Timeline::of([&all], f64::NAN)?.sum())
}

fn held(finding: &Finding) -> Vec<Change> {
    changes(finding, |markers, place| [markers[place].held(); 2])
}

impl Together {
    /// `None` if no marker has a time.
    pub fn of(findings: &[Finding]) -> Option<Together> {
        let groups = groups(findings);
        let ends = findings.iter().map(|finding| finding.process.last_time());
        let last = ends.clone().flatten().fold(f64::NAN, f64::max);
        let timeline = Timeline::of(groups.iter().map(|group| &group.changes), last)?;
        let sum = timeline.sum();
        let killed = findings.iter().filter(|finding| finding.is_killed());
        let killed = killed.map(|finding| finding.process);
        let kills = killed.filter_map(|process| Some((process.last_time()?, process.full_name())));
        Some(Together {
            groups,
            start: timeline.start,
            limit: shared_limit(findings),
            sum,
            moments: moments(&timeline),
            kills: kills.collect(),
            undated: ends.filter(Option::is_none).count(),
        })
    }
}

fn groups(findings: &[Finding]) -> Vec<Group> {
    let sites = findings.iter().map(|one| one.process.site_or_name());
    let sites: Vec<String> = sites.collect();
    let is_by_site = sites.iter().any(|site| *site != sites[0]);
    let mut named: BTreeMap<String, Vec<Change>> = BTreeMap::new();
    for (finding, site) in findings.iter().zip(sites) {
        let process = finding.process;
        let name = match is_by_site {
            true => site,
            false => format!("{} {}", process.process_name(), process.pid_text()),
        };
        named.entry(name).or_default().extend(held(finding));
    }
    let mut groups: Vec<Group> = named.into_iter().map(Group::of).collect();
    groups.sort_by(|a, b| b.peak.total_cmp(&a.peak));
    if groups.len() > LISTED_GROUPS + 1 {
        let others = groups.split_off(LISTED_GROUPS);
        let name = format!("{} others", others.len());
        let changes = others.into_iter().flat_map(|group| group.changes);
        groups.push(Group::of((name, changes.collect())));
    }
    groups
}

/// The highest moment of each part of the time.
fn moments(timeline: &Timeline) -> Vec<Moment> {
    let width = (timeline.end - timeline.start) / MOMENTS as f64;
    let place = |t: f64| (((t - timeline.start) / width).round() as usize).min(MOMENTS);
    let mut moments = Vec::<Moment>::new();
    if width <= 0.0 {
        return moments;
    }
    timeline.replay(|t, next, total, groups| {
        let moment = |place: usize| (timeline.start + place as f64 * width, groups.to_vec());
        for place in place(t)..=place(next) {
            match moments.get_mut(place) {
                Some(highest) if highest.1.iter().sum::<f64>() < total => *highest = moment(place),
                Some(_) => {}
                None => moments.push(moment(place)),
            }
        }
    });
    moments
}

/// The limit of the control group that all processes share.
fn shared_limit(findings: &[Finding]) -> Option<f64> {
    let group = |process: &Process| (process.boot, process.cgroup, process.cgroup_limit);
    let shared @ (boot, path, limit) = group(findings.first()?.process);
    let is_one = findings.iter().all(|one| group(one.process) == shared);
    limit.filter(|_| findings.len() == 1 || is_one && boot.is_some() && path.is_some())
}

/// A marker with a time.
pub struct Visit<'a> {
    pub point: &'a Point,
    pub t: f64,
    /// Memory that the process shares with others since a fork, as far as the markers know the PSS.
    pub shared: f64,
}

impl Visit<'_> {
    /// RSS without shared memory.
    pub fn held(&self) -> f64 {
        (self.point.sizes.rss() - self.shared).max(0.0)
    }
}

/// A change of the memory of a process.
#[derive(Clone, Copy)]
pub struct Change {
    t: f64,
    /// After the moment. Processes that end at a moment count beside those that begin.
    is_after: bool,
    bytes: f64,
}

/// The changes of a process. `bytes` are those at the marker of a place, and those from then until the next marker.
/// Of markers with one time, the highest counts at the moment.
pub fn changes(finding: &Finding, bytes: impl Fn(&[Visit], usize) -> [f64; 2]) -> Vec<Change> {
    let visits = visits(finding);
    let is_chain = finding.process.processes > 1;
    let are_of_one = |a: &Visit, b: &Visit| !is_chain || a.point.order.epoch == b.point.order.epoch;
    let tail = match is_chain || finding.process.has_ended() || finding.is_killed() {
        true => 0.0,
        false => finding.process.silence(),
    };
    let mut changes = Vec::new();
    for visits in visits.chunk_by(are_of_one) {
        let (mut place, mut held, mut last) = (0, 0.0, f64::NAN);
        let mut change = |t, is_after, new| {
            let bytes = new - std::mem::replace(&mut held, new);
            changes.push(Change { t, is_after, bytes });
        };
        for at_once in visits.chunk_by(|a, b| a.t == b.t) {
            let sizes = (place..place + at_once.len()).map(|place| bytes(visits, place));
            let highest = sizes.reduce(|[a, _], [b, after]| [a.max(b), after]);
            let (t, [at, after]) = (at_once[0].t, highest.unwrap_or_default());
            change(t, false, at);
            change(t, true, after);
            (place, last) = (place + at_once.len(), t);
        }
        let end = last + tail;
        // The next process does not count beside this one.
        let next = finding.process.next_begins;
        match next.filter(|next| last < *next && *next <= end) {
            Some(next) => change(next, false, 0.0),
            None => change(end, true, 0.0),
        }
    }
    changes
}

/// The markers in the order of time, those of each process of a chain together.
fn visits<'a>(finding: &Finding<'a>) -> Vec<Visit<'a>> {
    let stages = finding.process.stages.iter();
    let own = stages.filter(|series| *series.stage != *PEAK_STAGE);
    let points = own.flat_map(Series::points);
    let mut points: Vec<(f64, &Point)> =
        points.filter_map(|point| Some((point.t?, point))).collect();
    let epoch = |(_, point): &(f64, &Point)| point.order.epoch;
    points.sort_by(|a, b| epoch(a).cmp(&epoch(b)).then(a.0.total_cmp(&b.0)));
    let mut shared = 0.0;
    let visits = points.into_iter().map(|(t, point)| {
        if let Some(pss) = point.sizes.get(Size::Pss) {
            shared = (point.sizes.rss() - pss).max(0.0);
        }
        Visit { point, t, shared }
    });
    visits.collect()
}

/// The changes of groups of processes, in the order of time.
pub struct Timeline {
    /// Each with the place of its group.
    changes: Vec<(usize, Change)>,
    groups: usize,
    pub start: f64,
    /// The last marker. A process without a marker `exit` counts until then.
    pub end: f64,
}

/// The highest sum, its first time, and the mean while a process runs.
#[derive(Clone, Copy)]
pub struct Sum {
    pub peak: f64,
    pub peak_time: f64,
    pub mean: f64,
}

impl Timeline {
    /// `None` without a marker that has a time. No process counts after `last`, unless a marker follows.
    pub fn of<'a>(
        groups: impl IntoIterator<Item = &'a Vec<Change>>,
        last: f64,
    ) -> Option<Timeline> {
        let (mut changes, mut count) = (Vec::new(), 0);
        for group in groups {
            changes.extend(group.iter().map(|change| (count, *change)));
            count += 1;
        }
        let markers = changes.iter().filter(|(_, change)| !change.is_after);
        let end = markers.fold(last, |end, (_, marker)| end.max(marker.t));
        for (_, change) in &mut changes {
            change.t = change.t.min(end);
        }
        changes.sort_by(|(_, a), (_, b)| a.t.total_cmp(&b.t).then(a.is_after.cmp(&b.is_after)));
        Some(Timeline {
            groups: count,
            start: changes.first()?.1.t,
            end,
            changes,
        })
    }

    /// Calls `see` for each moment: with its time and that of the next one, the sum of all, and that of each group.
    pub fn replay(&self, mut see: impl FnMut(f64, f64, f64, &[f64])) {
        let (mut all, mut sums) = (0.0, vec![0.0; self.groups]);
        let is_one = |(_, a): &(usize, Change), (_, b): &(usize, Change)| {
            (a.t, a.is_after) == (b.t, b.is_after)
        };
        let mut moments = self.changes.chunk_by(is_one).peekable();
        while let Some(moment) = moments.next() {
            for (group, change) in moment {
                all += change.bytes;
                sums[*group] += change.bytes;
            }
            let next = moments.peek().map_or(self.end, |next| next[0].1.t);
            see(moment[0].1.t, next, f64::max(all, 0.0), &sums);
        }
    }

    pub fn sum(&self) -> Sum {
        let (mut peak, mut peak_time) = (f64::NEG_INFINITY, f64::NAN);
        let (mut area, mut seconds) = (0.0, 0.0);
        self.replay(|t, next, bytes, _| {
            if bytes > peak {
                (peak, peak_time) = (bytes, t);
            }
            // Without a process a difference of rounding is left.
            if bytes >= 1.0 {
                area += bytes * (next - t);
                seconds += next - t;
            }
        });
        Sum {
            peak,
            peak_time,
            mean: if seconds > 0.0 { area / seconds } else { peak },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::analyse;
    use crate::report::analyse::fixtures::{bytes, processes, sample, sizes};
    use crate::report::model::Size;
    use crate::report::units::MB;
    use flarena_shared::marker::{Marker, ShortHash};

    /// `(pid, site, seconds, stage, RSS in MB)`
    type Row = (u32, &'static str, f64, &'static str, f64);

    fn together(rows: &[Row]) -> Together {
        let marker = |(seq, row): (usize, &Row)| {
            let (pid, site, t, stage, rss) = *row;
            Marker {
                pid: Some(pid),
                site: Some(site.into()),
                t: Some(t),
                stage: stage.into(),
                ..sample(seq, sizes(&[(Size::Rss, rss)]))
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
        assert_eq!((all.sum.peak / MB, all.sum.peak_time), (350.0, 20.0));
        assert_eq!((all.start, all.moments[MOMENTS].0), (0.0, 40.0));
        let groups: Vec<_> = all.groups.iter().map(|g| (&*g.name, g.peak / MB)).collect();
        assert_eq!(groups, [("a", 300.0), ("b", 50.0)]);
        let highest = |of: fn(&Moment) -> f64| all.moments.iter().map(of).fold(0.0, f64::max);
        assert_eq!(highest(|(_, parts)| parts.iter().sum()) / MB, 350.0);
        assert_eq!(highest(|(_, parts)| parts[0]) / MB, 300.0);
    }

    #[test]
    fn a_clock_that_goes_back_to_the_start_leaves_the_later_times_on_the_chart() {
        let all = together(&[
            (1, "a", 100.0, "load", 100.0),
            (1, "a", 200.0, "send", 300.0),
            (1, "a", 100.0, "exit", 100.0),
        ]);
        assert_eq!((all.start, all.moments[MOMENTS].0), (100.0, 200.0));
        assert_eq!((all.sum.peak / MB, all.sum.peak_time), (300.0, 200.0));
    }

    #[test]
    fn a_process_without_exit_ends_where_the_one_begins_that_goes_on_with_its_rounds() {
        let all = together(&[
            (1, "a", 0.0, "load", 5.0),
            (1, "a", 10.0, "send", 300.0),
            (2, "a", 20.0, "load", 5.0),
            (2, "a", 30.0, "send", 200.0),
            (2, "a", 40.0, "exit", 5.0),
        ]);
        assert_eq!(all.sum.peak / MB, 300.0);
    }

    #[test]
    fn of_markers_with_one_time_the_highest_counts() {
        let all = together(&[
            (1, "a", 0.0, "load", 300.0),
            (1, "a", 0.0, "send", 100.0),
            (1, "a", 9.0, "exit", 100.0),
        ]);
        assert_eq!((all.sum.peak / MB, all.sum.mean / MB), (300.0, 100.0));
    }

    #[test]
    fn a_pss_that_was_read_after_rss_had_grown_adds_no_memory() {
        let marker = |seq, pss: f64| {
            let known = [(Size::Rss, 100.0), (Size::Pss, pss)];
            sample(seq, sizes(&known))
        };
        let all = Together::of(&analyse(processes([marker(0, 60.0), marker(1, 120.0)])));
        assert_eq!(all.unwrap().sum.peak / MB, 100.0);
    }

    #[test]
    fn times_that_are_too_near_for_a_chart_have_no_moments() {
        let marker = |(seq, t)| Marker {
            t: Some(t),
            ..sample(seq, sizes(&[(Size::Rss, 100.0)]))
        };
        let markers = [(0, 0.0), (1, 5e-323), (2, 1e-322)].map(marker);
        let all = Together::of(&analyse(processes(markers))).unwrap();
        assert!(all.moments.is_empty());
    }

    #[test]
    fn a_limit_is_that_of_all_processes_if_they_share_the_control_group() {
        let limit_since = |boot, groups: [Option<u32>; 2], limits: [Option<f64>; 2]| {
            let marker = |pid: usize| Marker {
                pid: Some(pid as u32),
                boot,
                cgroup: groups[pid].map(ShortHash),
                cgroup_limit_bytes: limits[pid].and_then(bytes),
                ..sample(0, sizes(&[(Size::Rss, 190.0)]))
            };
            Together::of(&analyse(processes([0, 1].map(marker))))
                .unwrap()
                .limit
        };
        let limit = |groups, limits| limit_since(Some(ShortHash(7)), groups, limits);
        let [a, b] = [Some(1), Some(2)];
        let both = [Some(200.0); 2];
        assert_eq!(limit_since(None, [a, a], both), None, "of two machines");
        assert_eq!(limit([a, a], both), Some(200.0 * MB));
        assert_eq!(limit([a, b], both), None);
        assert_eq!(limit([None, None], both), None);
        assert_eq!(limit([a, a], [Some(200.0), None]), None);
    }

    #[test]
    fn one_site_is_divided_into_its_processes() {
        let rows = TWO_SITES.map(|(pid, _, t, stage, rss)| (pid, "a", t, stage, rss));
        let all = together(&rows);
        assert_eq!((all.groups.len(), &*all.groups[0].name), (3, "TR 1"));
    }

    #[test]
    fn few_sites_are_listed_and_of_forty_those_with_the_highest_peaks() {
        let of = |sites: u32| {
            let row = |i: u32| Marker {
                pid: Some(i % sites),
                site: Some(format!("site-{}", i % sites)),
                ..sample(
                    i as usize,
                    sizes(&[(Size::Rss, 250.0 - f64::from(i % sites))]),
                )
            };
            Together::of(&analyse(processes((0..4 * sites).map(row)))).unwrap()
        };
        let (few, many) = (of(7), of(40));
        assert!(few.moments.iter().all(|(_, parts)| parts.len() == 7));
        assert_eq!(
            [&*many.groups[0].name, &*many.groups[7].name],
            ["site-0", "33 others"]
        );
        assert!(many.moments.iter().all(|(_, parts)| parts.len() == 8));
    }
}
