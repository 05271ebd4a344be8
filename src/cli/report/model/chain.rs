//! Joins processes that follow each other into one, such as a trainer that is started for each round.
//!
//! Each of them has too few rounds for a verdict. Together they show whether each round needs more
//! memory than the one before: at the same stage, and at its peak.

use std::collections::HashMap;
use std::hash::Hash;

use super::order::Order;
use super::process::Process;
use super::sample::{Sample, Size};
use super::series::{Axis, Point, Series};

/// A process with so many rounds gets a verdict of its own.
const MIN_ROUNDS_ALONE: u64 = 5;
/// Fewer processes are not joined.
const MIN_PROCESSES: usize = 3;
/// The stage that holds the highest RSS of each process.
pub const PEAK_STAGE: &str = "(peak)";

/// Joins the processes of one site, role and program that follow each other. The order is kept.
pub fn join(processes: Vec<Process>) -> Vec<Process> {
    let placed = processes.into_iter().enumerate();
    let (short, mut joined): (Vec<Placed>, Vec<Placed>) =
        placed.partition(|(_, process)| is_short(process));
    let mut groups: HashMap<_, Vec<Placed>> = HashMap::new();
    for (place, process) in short {
        let group = groups.entry(key(&process)).or_default();
        group.push((place, process));
    }
    for chain in groups.into_values().flat_map(chains) {
        match chain.len() < MIN_PROCESSES {
            true => joined.extend(chain),
            false => joined.push((chain[0].0, one_of(chain))),
        }
    }
    joined.sort_by_key(|(place, _)| *place);
    joined.into_iter().map(|(_, process)| process).collect()
}

/// A process and its place in the list.
type Placed = (usize, Process);

/// Processes of a chain have equal keys.
fn key(process: &Process) -> impl Hash + Eq + use<> {
    let mut sites = process.sites.clone();
    sites.sort();
    (
        sites,
        process.proc.clone(),
        process.role.clone(),
        process.program.clone(),
        process.name.clone(),
        process.job.clone(),
    )
}

/// True for a process with rounds, but with too few for a verdict.
fn is_short(process: &Process) -> bool {
    let series = || process.stages.iter().map(|(_, series)| series);
    process.pid.is_some()
        && !process.sites.is_empty()
        && !first_round(process).is_nan()
        && series().all(|series| series.rounds < MIN_ROUNDS_ALONE)
}

fn first_round(process: &Process) -> f64 {
    let rounds = process.points().map(|point| point.round);
    rounds.fold(f64::NAN, f64::min)
}

/// Divides processes into chains: in a chain, each begins after the one before has ended.
fn chains(mut processes: Vec<Placed>) -> Vec<Vec<Placed>> {
    processes.sort_by(|(_, a), (_, b)| a.first_time.total_cmp(&b.first_time));
    let mut chains: Vec<(f64, Vec<Placed>)> = Vec::new();
    for (place, process) in processes {
        let begin = process.first_time;
        match chains.iter_mut().find(|(last, _)| *last <= begin) {
            Some((last, chain)) => {
                *last = process.last_time();
                chain.push((place, process));
            }
            None => chains.push((process.last_time(), vec![(place, process)])),
        }
    }
    chains.into_iter().map(|(_, chain)| chain).collect()
}

/// One process with the points of all. It has the pid of the last one.
fn one_of(chain: Vec<Placed>) -> Process {
    let mut stages: Vec<(Box<str>, Series)> = Vec::new();
    let mut joined: Option<Process> = None;
    for (place, (_, mut process)) in (0..).zip(chain) {
        let round = first_round(&process);
        let own = std::mem::take(&mut process.stages);
        let peak = (PEAK_STAGE.into(), peak(&process));
        for (name, mut series) in std::iter::once(peak).chain(own) {
            series.place_in_chain(place, round);
            match stages.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => known.append(series),
                None => stages.push((name, series)),
            }
        }
        if let Some(before) = joined {
            process.follow(&before);
        }
        joined = Some(process);
    }
    let mut joined = joined.unwrap_or_default();
    joined.stages = stages;
    joined
}

/// The highest RSS of a process as a point.
fn peak(process: &Process) -> Series {
    let mut peak = Sample {
        t: Some(process.first_time),
        ..Sample::default()
    };
    peak.sizes[Size::Rss] = process.peak_rss;
    let mut series = Series::new(Axis::Rounds);
    series.push(Point::of(&peak, Order { epoch: 0, seq: 0 }, None));
    series
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::{processes, sample, sizes};
    use crate::report::model::Unit;

    /// A process per round: it loads, receives, sends and ends.
    fn markers(round: usize, site: &'static str, rss: f64) -> [Sample; 4] {
        ["load", "receive", "send", "exit"].map(|stage| {
            let seq = ["load", "receive", "send", "exit"]
                .iter()
                .position(|s| *s == stage);
            let seq = seq.unwrap_or(0);
            let has_round = matches!(stage, "receive" | "send");
            Sample {
                pid: Some(1000 + round as u32),
                start: Some(round as u64),
                site: (stage != "load").then(|| site.into()),
                round: has_round.then_some(round as i64),
                stage: stage.into(),
                t: Some(10.0 * round as f64 + seq as f64),
                ..sample(seq, sizes(&[(Size::Rss, rss)]))
            }
        })
    }

    #[test]
    fn processes_that_follow_each_other_are_one_with_all_rounds() {
        let rounds = (0..14).flat_map(|round| markers(round, "site-1", 300.0 + round as f64));
        let found = processes(rounds);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].processes, found[0].markers), (14, 56));
        for stage in ["receive", "send", "exit", PEAK_STAGE] {
            let series = found[0].series(stage).unwrap();
            assert_eq!((series.rounds, series.unit()), (14, Unit::Round), "{stage}");
        }
    }

    #[test]
    fn processes_of_two_jobs_of_one_site_are_two_rows() {
        let rounds = (0..14).flat_map(|round| {
            let job = if round < 7 { "1a2b3c4d" } else { "5e6f7a8b" };
            markers(round, "site-1", 300.0).map(|marker| Sample {
                job: Some(job.into()),
                ..marker
            })
        });
        let found = processes(rounds);
        let counts: Vec<u64> = found.iter().map(|process| process.processes).collect();
        assert_eq!(counts, [7, 7]);
    }

    #[test]
    fn chain_counts_the_processes_that_ended_without_exit() {
        let is_cut =
            |round: usize, marker: &Sample| matches!(round, 3 | 5 | 13) && marker.stage == "exit";
        let rounds = (0..14).flat_map(|round| {
            let markers = markers(round, "site-1", 300.0).into_iter();
            markers.filter(move |marker| !is_cut(round, marker))
        });
        let found = processes(rounds);
        // The last one is judged as a process of its own.
        assert_eq!((found[0].processes, found[0].ended_without_exit), (14, 2));
    }

    #[test]
    fn processes_of_two_sites_or_at_the_same_time_are_not_one() {
        let sites = ["site-1", "site-2"];
        let one = |round: usize| markers(round, sites[round % 2], 300.0);
        let found = processes((0..14).flat_map(one));
        let counts: Vec<u64> = found.iter().map(|process| process.processes).collect();
        assert_eq!(counts, [7, 7]);
        let together = (0..4).flat_map(|i| {
            markers(i, "site-1", 300.0).map(|marker| Sample {
                t: marker.t.map(|t| t % 10.0),
                ..marker
            })
        });
        assert_eq!(processes(together).len(), 4);
    }
}
