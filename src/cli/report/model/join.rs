//! Resolves which processes are one: programs that follow each other by an exec, processes that follow each other at the same
//! task, and logs of processes that also wrote markers.

use std::collections::HashMap;
use std::hash::Hash;
use std::mem::take;

use flarena_shared::marker::Marker;
use flarena_shared::stages::Stage;

use super::order::Order;
use super::process::Process;
use super::series::{Point, Series};

/// A process with so many rounds gets a verdict of its own.
const MIN_ROUNDS_ALONE: u64 = 5;
/// Fewer processes are not joined.
const MIN_PROCESSES: usize = 3;
/// The stage that holds the highest RSS of each process.
pub const PEAK_STAGE: &str = "(peak)";

/// Joins processes that follow each other, in the order of their begins. The list keeps its order.
///
/// A trainer that is started for each round has too few rounds for a verdict. Together these processes show whether each round
/// needs more memory than the one before: at the same stage, and at its peak.
pub fn join(mut processes: Vec<Process>, max_points: usize) -> Vec<Process> {
    join_programs(&mut processes);
    let tasks = in_time(&processes, |one| is_short(one).then(|| task(one)));
    let chains = tasks.iter().flat_map(|places| chains(&processes, places));
    let chains: Vec<Vec<usize>> = chains.collect();
    let mut rows: Vec<Option<Process>> = processes.into_iter().map(Some).collect();
    for chain in chains {
        if chain.len() >= MIN_PROCESSES {
            let members = chain.iter().filter_map(|place| rows[*place].take());
            rows[chain[0]] = Some(one_of(members.collect(), max_points));
        }
    }
    let mut rows: Vec<Process> = rows.into_iter().flatten().collect();
    note_next(&mut rows);
    rows
}

/// The places of the processes with equal keys, in the order of their begins. Those without a key are left out.
fn in_time<K: Hash + Eq>(
    processes: &[Process],
    key: impl Fn(&Process) -> Option<K>,
) -> Vec<Vec<usize>> {
    let begin = |place: &usize| processes[*place].first_time.unwrap_or(f64::INFINITY);
    let mut places: Vec<usize> = (0..processes.len()).collect();
    places.sort_by(|a, b| begin(a).total_cmp(&begin(b)));
    let mut groups: HashMap<K, Vec<usize>> = HashMap::new();
    for place in places {
        if let Some(key) = key(&processes[place]) {
            groups.entry(key).or_default().push(place);
        }
    }
    groups.into_values().collect()
}

/// Names the programs that follow each other by an exec. A program that wrote no marker but `load` is no row: it set up the next
/// one, which names it.
fn join_programs(processes: &mut Vec<Process>) {
    let identity = |one: &Process| {
        let started = one.pid.zip(one.start).filter(|_| one.loaded.is_some());
        // Processes of two machines may have the same pid and start time.
        Some((started?, one.boot, one.host.clone()))
    };
    for programs in in_time(processes, identity) {
        for pair in programs.windows(2) {
            if let Ok([before, next]) = processes.get_disjoint_mut([pair[0], pair[1]])
                && !before.has_exited
            {
                before.became = Some(next.program_name());
                if before.has_only_loaded() {
                    next.began_as = take(&mut before.began_as);
                    next.began_as.push(before.program_name());
                }
            }
        }
    }
    processes.retain(|one| one.became.is_none() || !one.has_only_loaded());
}

/// Divides processes of one task, in the order of their begins, into chains.
///
/// Ranks side by side begin in the same order in each round, and end in any: a process continues the first chain that is idle,
/// which is not the one that ended first.
fn chains(processes: &[Process], places: &[usize]) -> Vec<Vec<usize>> {
    let mut chains: Vec<(Option<f64>, Vec<usize>)> = Vec::new();
    for place in places {
        let (begin, end) = (processes[*place].first_time, processes[*place].last_time());
        match chains.iter_mut().find(|(end, _)| *end <= begin) {
            Some(chain) => {
                chain.0 = end;
                chain.1.push(*place);
            }
            None => chains.push((end, vec![*place])),
        }
    }
    chains.into_iter().map(|(_, members)| members).collect()
}

/// Notes when the next process of the same task begins, if it goes on with the rounds: its first one is later than those of the
/// process, or repeats the last of several.
fn note_next(processes: &mut [Process]) {
    let rounds: Vec<_> = processes.iter().map(rounds).collect();
    // Machines do not go on with the rounds of each other.
    let key = |one: &Process| Some((one.first_time.map(|_| task(one))?, one.host.clone()));
    for places in in_time(processes, key) {
        for place in &places {
            let end = processes[*place].last_time();
            let later = places.partition_point(|other| processes[*other].first_time < end);
            let next = places[later..].iter().find(|other| *other != place);
            let next = next.filter(|next| {
                let both = rounds[*place].zip(rounds[**next]);
                both.is_some_and(|((first, last), (next, _))| {
                    next > last || next == last && first < last
                })
            });
            processes[*place].next_begins = next.and_then(|next| processes[*next].first_time);
        }
    }
}

/// Processes with the same task may go on with the rounds of each other.
fn task(one: &Process) -> impl Hash + Eq + use<> {
    let mut sites = one.sites.clone();
    sites.sort();
    let names = [&one.role, &one.program, &one.name, &one.job].map(Option::clone);
    (sites, one.proc.clone(), names)
}

/// True for a process with times and rounds, but with too few rounds for a verdict.
fn is_short(process: &Process) -> bool {
    let mut stages = process.stages.iter();
    process.pid.is_some()
        && process.first_time.is_some()
        && !process.sites.is_empty()
        && rounds(process).is_some()
        && stages.all(|series| series.rounds < MIN_ROUNDS_ALONE)
}

/// The first and the last round.
fn rounds(process: &Process) -> Option<(i64, i64)> {
    let rounds = process.points().filter_map(|point| point.round);
    Some((rounds.clone().min()?, rounds.max()?))
}

/// One process with the points of all, which follow each other. It has the pid of the last one.
fn one_of(chain: Vec<Process>, max_points: usize) -> Process {
    let mut joined = Process::default();
    for (place, mut process) in (0..).zip(chain) {
        let round = rounds(&process).map(|(first, _)| first);
        let peak = peak(&process);
        let own = std::mem::replace(&mut process.stages, take(&mut joined.stages));
        for series in std::iter::once(peak).chain(own) {
            let joined = process.series_mut(&series.stage);
            joined.append(series, place, round);
        }
        if place > 0 {
            process.follow(&joined);
        }
        joined = process;
    }
    for series in &mut joined.stages {
        if series.len() > max_points {
            series.compact(max_points);
        }
    }
    joined
}

/// The highest RSS of a process as a point.
fn peak(process: &Process) -> Series {
    let peak = Marker {
        t: process.first_time,
        rss_bytes: Some(process.peak_rss as u64),
        ..Marker::default()
    };
    let mut series = Series::of_stage(PEAK_STAGE);
    series.push(Point::of(&peak, Order { epoch: 0, seq: 0 }, None));
    series
}

/// NVFlare's process name for a user of its Client API: the trainer or the job's process.
const CLIENT_API: &str = "CA";
/// NVFlare's name for the stage `receive`.
const NVFLARE_RECEIVE: &str = "recv";
/// NVFlare and flarena measure RSS at almost the same moment.
const RSS_TOLERANCE: f64 = 0.05;
const SAME_MOMENT_SECONDS: f64 = 1.0;

/// NVFlare writes `[RSS]` lines into `log.txt` and again into `log.json`, the lines of a trainer into the
/// log of its job, and lines of its own beside flarena's. The lines have no pid, so their contents are
/// compared with those of the markers and of the other logs.
pub fn remove_copies(processes: &mut Vec<Process>) -> Vec<Process> {
    let is_copy = |place: usize| processes[place].pid.is_none() && is_copied(place, processes);
    let is_copy: Vec<bool> = (0..processes.len()).map(is_copy).collect();
    let mut is_copy = is_copy.into_iter();
    let copies = processes.extract_if(.., |_| is_copy.next().unwrap_or(false));
    copies.collect()
}

/// True if most points of the log are points of a process with markers, or of another log that is kept.
fn is_copied(place: usize, all: &[Process]) -> bool {
    let log = &all[place];
    // flarena's lines tell more than NVFlare's own. Of two equal logs the first one is kept.
    let rank = |place: usize| (all[place].proc == CLIENT_API, place);
    let is_proof = !log.sites.is_empty() || is_copied_with_sites(log, all);
    let is_kept = |other: usize| all[other].pid.is_some() || is_proof && rank(other) < rank(place);
    let kept = (0..all.len()).filter(|other| is_kept(*other));
    let kept = kept.map(|other| &all[other]);
    let candidates = kept.filter(|other| may_be_copied_from(log, other));
    let candidates: Vec<&Process> = candidates.collect();
    let is_known = |(stage, point): &(&str, &Point)| {
        let mut candidates = candidates.iter();
        candidates.any(|other| has_point_like(other, stage, point))
    };
    2 * log.visits().filter(is_known).count() > log.points().count()
}

/// True if all lines with a site that the same program wrote into the same log are copies, or if it wrote none: then the others
/// are the whole log. The lines before a program knows its site, such as `load`, are often equal to those of another trainer.
fn is_copied_with_sites(log: &Process, all: &[Process]) -> bool {
    let is_row = |one: &Process| {
        one.pid.is_none() && !one.sites.is_empty() && (&one.log, &one.proc) == (&log.log, &log.proc)
    };
    (0..all.len()).all(|place| !is_row(&all[place]) || is_copied(place, all))
}

fn may_be_copied_from(log: &Process, other: &Process) -> bool {
    let is_client = log.proc == CLIENT_API && matches!(&*other.proc, "TR" | "CJ");
    let has_same_name = log.proc == other.proc || is_client;
    has_same_name && log.sites.iter().all(|site| other.sites.contains(site))
}

fn has_point_like(process: &Process, wanted_stage: &str, wanted: &Point) -> bool {
    let stage = match wanted_stage {
        NVFLARE_RECEIVE => Stage::Receive.name(),
        other => other,
    };
    let rss = wanted.sizes.rss();
    let matches = |point: &Point| {
        // A marker without a round takes the round of its process, which a log may not show.
        let has_same_round = wanted.round.is_none_or(|round| point.round == Some(round));
        // Two logs without pids may be those of two runs of the same job.
        let is_near = |(t, wanted): (f64, f64)| (t - wanted).abs() <= SAME_MOMENT_SECONDS;
        let is_same_moment = process.pid.is_some() || point.t.zip(wanted.t).is_some_and(is_near);
        let has_same_size = (point.sizes.rss() - rss).abs() <= RSS_TOLERANCE * rss;
        has_same_round && is_same_moment && has_same_size
    };
    let series = process.series(stage).or(process.series(wanted_stage));
    series.is_some_and(|series| series.points().iter().any(matches))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::report::analyse::fixtures::{processes, sample, sizes};
    use crate::report::model::{Size, Unit};
    use crate::report::units::MB;
    use flarena_shared::marker::ShortHash;

    /// `(program, host, seq, stage)` of one pid, a second apart.
    type Row = (&'static str, &'static str, usize, &'static str);

    fn programs(rows: &[Row]) -> Vec<(String, Vec<String>, Option<String>)> {
        let marker = |(t, &(program, host, seq, stage)): (usize, &Row)| Marker {
            program: Some(program.into()),
            host: Some(host.into()),
            site: None,
            stage: stage.into(),
            t: Some(t as f64),
            ..sample(seq, sizes(&[(Size::Rss, 100.0)]))
        };
        let found = processes(rows.iter().enumerate().map(marker)).into_iter();
        let facts = |one: Process| (one.program.unwrap_or_default(), one.began_as, one.became);
        found.map(facts).collect()
    }

    #[test]
    fn a_program_that_only_loaded_before_an_exec_is_named_by_the_next_one() {
        let rows = [
            ("sh", "a", 0, "load"),
            ("setup.py", "a", 0, "load"),
            ("work.py", "a", 0, "load"),
            ("work.py", "a", 1, "send"),
        ];
        let began_as = ["sh", "setup.py"].map(str::to_owned).to_vec();
        assert_eq!(programs(&rows), [("work.py".to_owned(), began_as, None)]);
    }

    #[test]
    fn a_program_that_worked_before_an_exec_is_a_row_and_names_the_next_one() {
        let rows = [
            ("train.py", "a", 0, "load"),
            ("train.py", "a", 1, "send"),
            ("eval.py", "a", 0, "load"),
        ];
        assert_eq!(
            programs(&rows),
            [
                ("train.py".to_owned(), vec![], Some("eval.py".to_owned())),
                ("eval.py".to_owned(), vec![], None),
            ]
        );
    }

    #[test]
    fn processes_of_two_machines_are_no_programs_of_one() {
        let rows = [("a.py", "a", 0, "load"), ("b.py", "b", 0, "load")];
        let found = programs(&rows).into_iter();
        assert!(found
            .map(|(_, began_as, became)| (began_as, became))
            .all(|one| one == (vec![], None)));
    }

    #[test]
    fn processes_of_two_boots_with_equal_host_pid_and_start_are_no_programs_of_one() {
        let marker = |boot: u32| Marker {
            boot: Some(ShortHash(boot)),
            host: Some("vm".into()),
            t: Some(f64::from(boot)),
            stage: "load".into(),
            ..sample(0, sizes(&[(Size::Rss, 100.0)]))
        };
        let found = processes([1, 2].map(marker));
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|one| one.became.is_none()));
    }

    /// A process per round: it loads, receives, sends and ends.
    fn markers(round: usize, site: &'static str, rss: f64) -> [Marker; 4] {
        ["load", "receive", "send", "exit"].map(|stage| {
            let seq = ["load", "receive", "send", "exit"]
                .iter()
                .position(|s| *s == stage);
            let seq = seq.unwrap_or(0);
            let has_round = matches!(stage, "receive" | "send");
            Marker {
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
    fn of_processes_side_by_side_each_continues_its_own_chain() {
        // The first rank begins first and ends last.
        let ranks = [(600.0, 0.0, 3.0), (300.0, 2.0, 1.0)];
        let of_rank = |round: usize, rank: usize| {
            let (rss, begin, step) = ranks[rank];
            markers(2 * round + rank, "site-1", rss).map(|marker| Marker {
                round: marker.round.map(|_| round as i64),
                t: marker
                    .seq
                    .map(|seq| 10.0 * round as f64 + begin + step * seq as f64),
                ..marker
            })
        };
        let rounds = (0..14).flat_map(|round| [of_rank(round, 0), of_rank(round, 1)]);
        let found = processes(rounds.flatten());
        let facts = found.iter().map(|chain| {
            let sizes: BTreeSet<u64> = chain.points().map(|one| one.sizes.rss() as u64).collect();
            (chain.processes, sizes)
        });
        let of_size = |rss: f64| (14, BTreeSet::from([(rss * MB) as u64]));
        assert_eq!(facts.collect::<Vec<_>>(), [of_size(600.0), of_size(300.0)]);
    }

    #[test]
    fn a_program_that_became_another_one_is_no_member_of_a_chain() {
        let rounds = (0..7).flat_map(|round| {
            let [load, _, send, _] = markers(round, "site-1", 200.0);
            let shell = Marker {
                program: Some("sh".into()),
                stage: load.stage.clone(),
                seq: load.seq,
                t: load.t,
                ..send.clone()
            };
            let begin = Marker {
                program: Some("work.py".into()),
                t: load.t.map(|t| t + 1.0),
                ..shell.clone()
            };
            // The shell of the last round has not become another program.
            let is_last = round == 6;
            let work = [begin, send].into_iter().filter(move |_| !is_last);
            std::iter::once(shell).chain(work)
        });
        let found = processes(rounds).into_iter();
        let counts: Vec<(u64, u64)> = found.map(|one| (one.processes, one.markers)).collect();
        assert_eq!(counts, [(6, 12), (1, 1)]);
    }

    #[test]
    fn a_long_chain_has_as_few_points_as_a_long_series() {
        let found = processes((0..3000).flat_map(|round| markers(round, "site-1", 300.0)));
        let series = found[0].series("send").unwrap();
        assert_eq!((found[0].processes, series.rounds), (3000, 3000));
        assert!((512..=1024).contains(&series.len()), "{}", series.len());
    }

    #[test]
    fn processes_of_two_jobs_of_one_site_are_two_rows() {
        let rounds = (0..14).flat_map(|round| {
            let job = if round < 7 { "1a2b3c4d" } else { "5e6f7a8b" };
            markers(round, "site-1", 300.0).map(|marker| Marker {
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
            |round: usize, marker: &Marker| matches!(round, 3 | 5 | 13) && marker.stage == "exit";
        let rounds = (0..14).flat_map(|round| {
            let markers = markers(round, "site-1", 300.0).into_iter();
            markers.filter(move |marker| !is_cut(round, marker))
        });
        let found = processes(rounds);
        // The last one is judged as a process of its own.
        assert_eq!((found[0].processes, found[0].ended_without_exit), (14, 2));
    }

    #[test]
    fn a_chain_has_the_latest_refused_allocation_of_its_processes() {
        let asked = |round: usize| matches!(round, 3 | 5).then_some(round as u64);
        let rounds = (0..14).flat_map(|round| {
            markers(round, "site-1", 300.0).map(|marker| Marker {
                asked_bytes: asked(round).filter(|_| marker.stage == "send"),
                ..marker
            })
        });
        let refused = processes(rounds).remove(0).refused;
        assert_eq!(refused.map(|one| one.asked_bytes), Some(5));
    }

    #[test]
    fn processes_of_two_sites_or_at_the_same_time_are_not_one() {
        let sites = ["site-1", "site-2"];
        let one = |round: usize| markers(round, sites[round % 2], 300.0);
        let found = processes((0..14).flat_map(one));
        let counts: Vec<u64> = found.iter().map(|process| process.processes).collect();
        assert_eq!(counts, [7, 7]);
        let together = (0..4).flat_map(|i| {
            markers(i, "site-1", 300.0).map(|marker| Marker {
                t: marker.t.map(|t| t % 10.0),
                ..marker
            })
        });
        assert_eq!(processes(together).len(), 4);
    }
}
