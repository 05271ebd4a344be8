//! A job's log and its markers tell of one process twice: NVFlare writes a trainer's `[RSS]` lines into the
//! log of its job. Lines carry no pid, so what they say is compared.

use super::process::Process;
use super::sample::Size;
use super::series::Point;

/// A process of a log: where it was read, and how many markers it had.
pub struct Duplicate {
    pub log: String,
    pub markers: u64,
}

/// NVFlare's name, in its own lines, for whoever calls its Client API: the trainer, or the job's process.
const CLIENT_API: &str = "CA";
/// NVFlare's lines and ours are written at nearly the same moment.
const NEARLY: f64 = 0.05;

/// Takes out the processes of logs that markers tell of, too.
pub fn take_out(processes: &mut Vec<Process>) -> Vec<Duplicate> {
    let twice = |process: &Process| process.pid.is_none() && is_told_twice(process, processes);
    let told: Vec<bool> = processes.iter().map(twice).collect();
    let mut told = told.into_iter();
    let taken = processes.extract_if(.., |_| told.next().unwrap_or(false));
    let duplicate = |process: Process| Duplicate {
        log: process.log.unwrap_or_default(),
        markers: process.samples,
    };
    taken.map(duplicate).collect()
}

/// Most of its lines have a marker of the same site, stage, round and size.
fn is_told_twice(line: &Process, all: &[Process]) -> bool {
    let is_other = |other: &&Process| other.pid.is_some() && may_be_one(line, other);
    let others: Vec<&Process> = all.iter().filter(is_other).collect();
    let (mut known, mut points) = (0, 0);
    for (stage, series) in &line.stages {
        for point in series.points() {
            let is_it = |other: &&Process| has(other, stage, point.round, point.sizes[Size::Rss]);
            known += usize::from(others.iter().any(is_it));
            points += 1;
        }
    }
    2 * known > points
}

fn may_be_one(line: &Process, other: &Process) -> bool {
    let calls_it = line.proc == CLIENT_API && matches!(&*other.proc, "TR" | "CJ");
    let is_named = line.proc == other.proc || calls_it;
    is_named && line.sites.iter().all(|site| other.sites.contains(site))
}

fn has(process: &Process, stage: &str, round: f64, rss: f64) -> bool {
    let is_it = |point: &Point| {
        let same_round = point.round == round || point.round.is_nan() && round.is_nan();
        same_round && (point.sizes[Size::Rss] - rss).abs() <= NEARLY * rss
    };
    let series = process.series(stage);
    series.is_some_and(|series| series.points().iter().any(is_it))
}
