//! `flarena report`: explains the memory of processes from their markers and log lines.
//!
//! `read` turns files into a `model`, `analyse` and `sites` judge it, `explain` words the result, and
//! `output` shows it. `output` uses `explain`, `explain` uses `analyse`, and all use `model`.

mod analyse;
mod calendar;
mod explain;
mod fail_on;
#[cfg(test)]
pub mod fuzz;
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

use flarena_shared::system_error::reason;

use crate::output::{note, print as print_text, print_json};
use crate::{exit, proc};
pub use analyse::stats::{median, Change, ChangeVerdict, Spread};
use analyse::{Comparison, ProcessReport};
use fail_on::Condition;
use model::Process;
use output::{comparison, html, json, print, prometheus, request, write, ListLength};
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
    /// Compare two runs, each a file or a folder, site by site and stage by stage. The intervals
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
    /// process that warms up, has cyclic garbage or too few rounds does not meet it, and a rate per
    /// hour needs a minute of markers. peak:8GB fails when RSS was higher, limit:24h when a growing process
    /// reaches its memory limit sooner, verdict:retention when a process has this verdict.
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
    if let [before, after] = &args.compare[..] {
        return args.compare([before, after]);
    }
    args.report()
}

/// Reads a run, and prints the messages about its files.
fn read_run(inputs: &[PathBuf], limit: Option<f64>) -> (Vec<ProcessReport>, Vec<FileReport>) {
    let (processes, files) = read::read_all(inputs);
    for message in files.iter().flat_map(|file| file.printed_messages()) {
        note(message);
    }
    let about_all = [
        read::message_about_repeated_markers(&files),
        read::message_about_files_without_markers(&files),
    ];
    for message in about_all.into_iter().flatten() {
        note(message);
    }
    let mut reports = analyse::analyse(processes, limit);
    let running = Running::of_this_machine();
    analyse::find_kills(&mut reports, |process| running.may_run(process));
    (reports, files)
}

/// The processes that run on this machine.
struct Running {
    host: Vec<u8>,
    /// Pid and start time of each, in its own pid namespace.
    processes: HashSet<(u32, u64)>,
    /// Seconds since 1970.
    now: f64,
}

impl Running {
    fn of_this_machine() -> Running {
        let all = proc::Process::all().into_iter();
        let processes = all.filter(|process| !process.has_ended());
        let processes =
            processes.map(|process| (process.own_pid() as u32, process.own_start_ticks()));
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Running {
            host: rustix::system::uname().nodename().to_bytes().to_vec(),
            processes: processes.collect(),
            now: now.map_or(f64::INFINITY, |now| now.as_secs_f64()),
        }
    }

    /// A process may run if it is among those that run here, in any pid namespace. One of another machine or container
    /// may run until it has been silent for longer than ever before.
    fn may_run(&self, process: &Process) -> bool {
        const MIN_SILENCE_SECONDS: f64 = 60.0;
        let identity = process.pid.zip(process.start);
        if identity.is_some_and(|identity| self.processes.contains(&identity)) {
            return true;
        }
        let ran_here = process
            .host
            .as_ref()
            .is_some_and(|host| host.as_bytes() == self.host);
        let silence = process.longest_silence().max(MIN_SILENCE_SECONDS);
        !ran_here && self.now - process.last_time() <= silence
    }
}

impl Args {
    /// Prints the report, and writes the requested files.
    fn report(&self) -> anyhow::Result<ExitCode> {
        let (reports, files) = read_run(&self.files, self.limit);
        let mut out = BufWriter::new(io::stdout().lock());
        let requests = analyse::requests(&reports, self.rounds);
        let written = match (self.json, self.request) {
            (true, _) => json::write(&mut out, &reports, &files, &requests),
            (false, _) if reports.is_empty() => Ok(()),
            (false, Some(form)) => {
                out.write_all(request::specification(&requests, form).as_bytes())
            }
            (false, None) => {
                let text = print::report(&reports, &requests, self.list_length());
                out.write_all(text.as_bytes())
            }
        };
        written
            .and_then(|()| out.flush())
            .context("cannot write to stdout")?;
        let page = || html::page(&reports, &files, self.list_length());
        let metrics = || prometheus::metrics(&reports);
        let saved = save(self.html.as_ref(), page) & save(self.prometheus.as_ref(), metrics);
        let failed = meets_any(&self.fail_on, &reports);
        Ok(ExitCode::from(match () {
            () if failed => exit::PROBLEM,
            () if !saved || files.iter().any(|file| file.is_incomplete) => exit::UNREADABLE,
            () if reports.is_empty() => exit::UNREADABLE,
            () => 0,
        }))
    }

    fn compare(&self, inputs: [&PathBuf; 2]) -> anyhow::Result<ExitCode> {
        let [(before, old_files), (after, new_files)] =
            inputs.map(|input| read_run(std::slice::from_ref(input), self.limit));
        let compared = Comparison::of(&before, &after);
        let length = self.list_length();
        match self.json {
            true => print_json(&comparison::json(&compared))?,
            false => print_text(&comparison::print(&compared, length))?,
        }
        let saved = save(self.html.as_ref(), || {
            comparison::page(&compared, inputs, length)
        });
        let mut files = old_files.iter().chain(&new_files);
        let is_incomplete = files.any(|file| file.is_incomplete);
        Ok(ExitCode::from(
            match !saved || is_incomplete || before.is_empty() || after.is_empty() {
                true => exit::UNREADABLE,
                false => 0,
            },
        ))
    }

    fn list_length(&self) -> ListLength {
        match self.all {
            true => ListLength::Full,
            false => ListLength::Short,
        }
    }
}

/// Writes a requested file. Returns false if that failed.
fn save(path: Option<&PathBuf>, text: impl FnOnce() -> String) -> bool {
    let Some(path) = path else { return true };
    let saved = write::replace(path, text().as_bytes());
    if let Err(error) = &saved {
        let (path, why) = (path.display(), reason(error));
        note(format_args!("cannot write {path}: {why}"));
    }
    saved.is_ok()
}

fn limit_argument(text: &str) -> Result<f64, String> {
    units::size_argument(text).and_then(|size| match size > 0.0 {
        true => Ok(size),
        false => Err("the limit must be above 0".to_owned()),
    })
}

/// Prints each condition that a process meets. Returns true if there is one.
fn meets_any(conditions: &[Condition], reports: &[ProcessReport]) -> bool {
    let mut is_met = false;
    for report in reports {
        for failure in conditions.iter().filter_map(|one| one.failure(report)) {
            let name = units::printable(&report.full_name());
            note(format_args!("{name}: {failure}"));
            is_met = true;
        }
    }
    is_met
}
