//! Everything that the outputs show, computed once: the table, JSON, Prometheus and the charts
//! must not differ.

pub mod attribution;
pub mod finding;
#[cfg(test)]
pub mod fixtures;
pub mod garbage;
pub mod judge;
pub mod stats;
pub mod time_to_limit;

use std::cmp::Ordering;

use crate::report::analyse::finding::{Finding, Verdict};
use crate::report::analyse::judge::judge;
use crate::report::analyse::stats::Slope;
use crate::report::analyse::time_to_limit::Reach;
use crate::report::explain;
use crate::report::model::{Process, Series, Size, NO_NAME};
use crate::report::units::known;

pub struct ProcessReport {
    pub process: Process,
    pub finding: Finding,
    /// Why this verdict, in one sentence.
    pub evidence: String,
    /// What to set or where to look.
    pub remedy: Option<String>,
    pub stages: Vec<StageReport>,
    /// When it will be at its memory limit, if it grows.
    pub reach: Option<Reach>,
    /// RSS at the last marker; NaN: not known.
    pub last_rss: f64,
}

pub struct StageReport {
    pub stage: String,
    pub rounds: u64,
    pub first: f64,
    pub last: f64,
    pub peak: f64,
    /// Growth of RSS and swap, as the verdict sees it; `None` when there are too few rounds to name one.
    pub growth: Option<Slope>,
}

impl ProcessReport {
    /// Bytes per round, when the verdict is that the process grows.
    pub fn growth(&self) -> Option<&Slope> {
        let Finding { verdict, trend, .. } = &self.finding;
        verdict.is_growth().then_some(&trend.slope)
    }

    /// At the stage that the verdict rests on.
    pub fn series(&self) -> Option<&Series> {
        self.process.series(&self.finding.stage)
    }

    pub fn pid(&self) -> String {
        known(self.process.pid, |pid| pid.to_string())
    }

    /// `TR`, or the program's name where NVFlare has none for it.
    pub fn proc(&self) -> String {
        match (self.process.proc.as_str(), &self.process.program) {
            ("-" | "", Some(program)) => program.clone(),
            (proc, _) => proc.to_owned(),
        }
    }

    /// `site-1 TR, pid 4711`: what people call the process.
    pub fn name(&self) -> String {
        let mut who = vec![self.process.site(), self.proc()];
        who.retain(|name| name != NO_NAME);
        match (who.join(" "), self.process.pid) {
            (who, None) if who.is_empty() => "unnamed process".to_owned(),
            (who, None) => who,
            (who, Some(pid)) if who.is_empty() => format!("pid {pid}"),
            (who, Some(pid)) => format!("{who}, pid {pid}"),
        }
    }
}

/// The processes, those that need attention first.
pub fn analyse(processes: Vec<Process>) -> Vec<ProcessReport> {
    let mut reports: Vec<ProcessReport> = processes.into_iter().filter_map(report).collect();
    reports.sort_by(by_urgency);
    reports
}

fn report(process: Process) -> Option<ProcessReport> {
    let (finding, trends) = judge(&process)?;
    let stages = process.stages.iter().zip(trends);
    let stages = stages.map(|((name, series), trend)| StageReport {
        stage: name.to_string(),
        rounds: series.rounds,
        first: series.first_rss(),
        last: series.last_rss(),
        peak: series.peak_rss(),
        growth: trend.known_slope(),
    });
    let stages = stages.collect();
    let reach = Reach::of(&process, &finding);
    let mut evidence = explain::sentence(&process, &finding);
    if let Some(reach) = &reach {
        evidence += " ";
        evidence += &reach.sentence();
    }
    let latest = process.last_points().max_by_key(|point| point.order);
    let last_rss = latest.map_or(f64::NAN, |point| point.sizes[Size::Rss]);
    Some(ProcessReport {
        evidence,
        remedy: explain::remedy(&process, &finding),
        process,
        finding,
        stages,
        reach,
        last_rss,
    })
}

fn by_urgency(a: &ProcessReport, b: &ProcessReport) -> Ordering {
    let growth = |r: &ProcessReport| r.growth().map_or(0.0, |slope| slope.per_x);
    let who = |r: &ProcessReport| {
        (
            numbered(&r.process.site()),
            r.process.proc.clone(),
            r.process.pid,
            r.process.start,
        )
    };
    let urgency = |r: &ProcessReport| !r.finding.verdict.is_growth();
    urgency(a)
        .cmp(&urgency(b))
        .then(growth(b).total_cmp(&growth(a)))
        .then(a.finding.verdict.cmp(&b.finding.verdict))
        .then((a.finding.rounds < 2).cmp(&(b.finding.rounds < 2)))
        .then_with(|| who(a).cmp(&who(b)))
}

/// `site-10` after `site-9`.
fn numbered(name: &str) -> (String, u64) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (stem.to_owned(), name[stem.len()..].parse().unwrap_or(0))
}

/// How many processes have each verdict, those that need attention first.
pub fn tally(reports: &[ProcessReport]) -> Vec<(Verdict, usize)> {
    let count = |v: Verdict| reports.iter().filter(|r| r.finding.verdict == v).count();
    let counts = Verdict::all().map(|v| (v, count(v)));
    counts.filter(|(_, n)| *n > 0).collect()
}
