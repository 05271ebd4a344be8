//! Processes with known contents, for tests.

use super::finding::Finding;
use super::stats::Trend;
use super::ProcessReport;
use crate::report::model::{Process, Sample, Size, Sizes, SourceLine, Store};
use crate::report::units::MB;

/// These sizes in MB; the others are unknown.
pub fn sizes(known: &[(Size, f64)]) -> Sizes {
    let mut sizes = Sizes::UNKNOWN;
    for (size, megabytes) in known {
        sizes[*size] = megabytes * MB;
    }
    sizes
}

/// A number that is unknown if it is NaN.
pub fn if_known(number: f64) -> Option<f64> {
    Some(number).filter(|number| !number.is_nan())
}

/// One sample per round, all of one process and one stage, ten seconds apart.
pub fn sample(round: usize, sizes: Sizes) -> Sample {
    Sample {
        pid: Some(7),
        start: Some(1),
        proc: "TR".into(),
        site: Some("site-1".into()),
        round: Some(round as i64),
        stage: "send".into(),
        alloc: Some("glibc".into()),
        t: Some(10.0 * round as f64),
        seq: Some(round as u64),
        sizes,
        ..Sample::default()
    }
}

pub fn processes(samples: impl IntoIterator<Item = Sample>) -> Vec<Process> {
    let (log, epoch, line) = ("x", 0, 1);
    let mut store = Store::default();
    for sample in samples {
        store.add(&sample, &SourceLine { log, epoch, line });
    }
    store.finish().0
}

/// The finding for a process alone, and the trend at each stage.
pub fn judge(process: &Process) -> Option<(Finding, Vec<Trend>)> {
    let judged = super::judge::judge(process)?;
    Some(judged.finding(None))
}

/// Judges without `--limit`.
pub fn analyse(processes: Vec<Process>) -> Vec<ProcessReport> {
    super::analyse(processes, None)
}

/// The only process of these samples, and its finding.
pub fn process_and_finding(samples: impl IntoIterator<Item = Sample>) -> (Process, Finding) {
    let process = processes(samples).remove(0);
    let (finding, _) = judge(&process).unwrap();
    (process, finding)
}
