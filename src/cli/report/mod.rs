//! `flarena report`: explains the memory of processes from their markers and log lines.
//!
//! Bytes → markers (`read`) → a table of processes and their series (`model`) → fits and findings (`analyse`, `sites`) → text
//! (`explain`) → `output`. Nothing is changed after it is made: a finding borrows its process, and all outputs read it.

mod analyse;
mod explain;
mod fail_on;
mod model;
pub mod output;
mod read;
mod sites;
mod units;

use std::collections::HashSet;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;

use crate::output::{chain, note, print as print_text, print_json, replace, terminal_width};
use crate::{exit, proc};
pub use analyse::stats::{median, t_975, Change, ChangeVerdict};
use analyse::{Comparison, Finding};
use fail_on::Condition;
use model::Process;
use output::{comparison, html, json, print, prometheus, request, ListLength};
#[cfg(test)]
pub use read::tests::any_input::any_log;
use read::FileReport;

/// Tables, verdicts and charts from markers and NVFlare's `[RSS]` log lines
///
/// Reads markers as JSON lines (FLARENA_MARKER_FILE), and `[RSS]` lines of flarena and NVFlare in any
/// log, plain or gzip, for many processes and sites at once. For each process it says whether memory
/// is flat or grows, which memory grows, and what to do about it.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Marker files and logs, plain or gzip, or folders with such files; `-` is standard input
    #[arg(required_unless_present = "compare", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Compare two runs, each a file or a folder, process by process and stage by stage. The intervals
    /// show how much the rounds within a run differ; two runs of one job may differ more
    #[arg(long, num_args = 2, value_names = ["BEFORE", "AFTER"])]
    #[arg(conflicts_with_all = ["files", "prometheus", "fail_on"])]
    compare: Vec<PathBuf>,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// Show all processes. Otherwise a long list ends after those that most need attention
    #[arg(long)]
    all: bool,
    /// The memory limit of a process whose markers name none, such as 8G. It gives the time until a limit is reached
    #[arg(long, value_name = "SIZE", value_parser = limit_argument)]
    limit: Option<f64>,
    /// Print only the memory to request for each site: for NVFlare (`resource_spec`), Kubernetes or Slurm
    ///
    /// NVFlare's form leaves out the parent processes SP and CP, which do not run in the container of the job.
    #[arg(long, value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "nvflare")]
    #[arg(conflicts_with_all = ["compare", "json"])]
    request: Option<request::Form>,
    /// The rounds of the whole job, so that the memory to request contains the growth until its end
    #[arg(long, value_name = "N")]
    rounds: Option<u64>,
    /// Write tables and charts as one self-contained HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write metrics for Prometheus (a file for the textfile collector of node_exporter)
    #[arg(long, value_name = "FILE")]
    prometheus: Option<PathBuf>,
    /// Exit with status 1 when a process meets CONDITION; may be given several times
    ///
    /// growth:5MB/round or growth:1GB/hour fails when the whole 95 % interval is above this size. A
    /// process that warms up, has cyclic garbage or too few rounds does not meet it. Periodic markers alone
    /// have no rounds, and a rate per hour needs a minute of markers. peak:8GB fails when RSS was higher, limit:24h
    /// when a process or its control group grows and reaches its limit sooner, verdict:retention when a process has
    /// this verdict.
    #[arg(long, value_name = "CONDITION")]
    fail_on: Vec<Condition>,
}

const EXAMPLES: &str = "\
Examples:
  flarena report markers.jsonl
  flarena report /var/tmp/flarena/
  flarena report --compare before.jsonl after.jsonl
  flarena report --html report.html site-*/log.txt* server/markers.jsonl.gz
  flarena report --request --rounds 100 markers.jsonl
  flarena report --fail-on growth:5MB/round --fail-on peak:8GB markers.jsonl
  flarena report --prometheus /var/lib/node_exporter/flarena.prom markers.jsonl

Exit status: 0 success; 1 a process meets a --fail-on condition; 3 a file cannot be read or written, or no file \
contains markers";

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let inputs: Vec<&[PathBuf]> = match args.compare.is_empty() {
        true => vec![&args.files],
        false => args.compare.chunks(1).collect(),
    };
    let (processes, files): (Vec<Vec<Process>>, Vec<Vec<FileReport>>) =
        inputs.into_iter().map(read::read_all).unzip();
    for files in &files {
        read::messages(files).for_each(note);
    }
    let may_run = may_run();
    let runs = processes.iter();
    let runs = runs.map(|all| analyse::findings(all, args.limit, &may_run));
    let runs: Vec<Vec<Finding>> = runs.collect();
    let length = match args.all {
        true => ListLength::Full,
        false => ListLength::Short,
    };
    let is_saved = match &runs[..] {
        [before, after] => args.compare([before, after], length)?,
        runs => args.report(&runs[0], &files[0], length)?,
    };
    let mut meets_any = false;
    for finding in runs.iter().flatten() {
        for failure in args.fail_on.iter().filter_map(|one| one.failure(finding)) {
            let name = units::printable(&finding.process.full_name());
            note(format_args!("{name}: {failure}"));
            meets_any = true;
        }
    }
    let is_read = files.iter().flatten().all(|file| file.fully_read);
    let is_complete = is_saved && is_read && !runs.iter().any(Vec::is_empty);
    Ok(ExitCode::from(match () {
        () if meets_any => exit::PROBLEM,
        () if is_complete => 0,
        () => exit::UNREADABLE,
    }))
}

/// A process may run if it is among those that run on this machine, in any pid namespace. One of another machine or
/// container may run until it has been silent for longer than ever before.
fn may_run() -> impl Fn(&Process) -> bool {
    let running = proc::Process::all().into_iter();
    let running = running.filter(|process| !process.has_ended());
    let identity = |process: proc::Process| (process.own_pid() as u32, process.own_start_ticks());
    let identities: HashSet<_> = running.map(identity).collect();
    let system = rustix::system::uname();
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(f64::INFINITY, |now| now.as_secs_f64());
    move |process| {
        let identity = process.pid.zip(process.start);
        let is_listed = identity.is_some_and(|identity| identities.contains(&identity));
        let host = process.host.as_ref().map(|host| host.as_bytes());
        let ran_here = host == Some(system.nodename().to_bytes());
        is_listed || !ran_here && !process.is_silent(now)
    }
}

impl Args {
    /// Prints the report, and writes the requested files. Returns false if one cannot be written.
    fn report(
        &self,
        findings: &[Finding],
        files: &[FileReport],
        length: ListLength,
    ) -> anyhow::Result<bool> {
        self.note_rounds(findings);
        let mut out = BufWriter::new(io::stdout().lock());
        let requests = analyse::requests(findings, self.rounds);
        let written = match self.request {
            _ if self.json => json::write(&mut out, findings, files, &requests),
            _ if findings.is_empty() => Ok(()),
            Some(form) => {
                request::notes(&requests).into_iter().for_each(note);
                write!(out, "{}", request::specification(&requests, form))
            }
            None => write!(out, "{}", print::report(findings, &requests, length)),
        };
        let written = written.and_then(|()| out.flush());
        written.context("cannot write to stdout")?;
        Ok(save(&self.html, || html::page(findings, files, length))
            & save(&self.prometheus, || prometheus::metrics(findings)))
    }

    fn note_rounds(&self, findings: &[Finding]) {
        let growing = findings.iter().filter(|one| one.growth().is_some());
        let points = growing.flat_map(|one| one.process.points());
        let last = points.filter_map(|point| point.round).max();
        // Rounds count from 0 or from 1.
        if let Some((rounds, last)) = self.rounds.zip(last)
            && i128::from(rounds) < i128::from(last)
        {
            note(format_args!(
                "--rounds {rounds} is below round {last} of a process that grows, so the memory to request contains no more \
                 growth of it; give the rounds of the whole job"
            ));
        }
    }

    fn compare(&self, runs: [&[Finding]; 2], length: ListLength) -> anyhow::Result<bool> {
        let compared = Comparison::of(runs);
        let inputs = [&self.compare[0], &self.compare[1]];
        let summary = comparison::summary(&compared, inputs, length);
        match self.json {
            true => print_json(&comparison::json(&compared))?,
            false => print_text(&summary.text(terminal_width()))?,
        }
        Ok(save(&self.html, || summary.page()))
    }
}

/// Writes a requested file. Returns false if that failed.
fn save(path: &Option<PathBuf>, text: impl FnOnce() -> String) -> bool {
    let Some(path) = path else { return true };
    let saved = replace(path, &text());
    if let Err(error) = &saved {
        note(chain(error));
    }
    saved.is_ok()
}

fn limit_argument(text: &str) -> Result<f64, String> {
    let size = units::size_argument(text)?;
    let size = Some(size).filter(|size| *size > 0.0);
    size.ok_or_else(|| "the limit must be above 0".to_owned())
}
