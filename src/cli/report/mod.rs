//! `flarena report`: what markers and log lines say about memory over the rounds.
//!
//! `read` turns files into `model`; `judge` asks `stats` and `cause` for a `finding`; `evidence` words it, with
//! a file of `verdicts` for each; `analysis` holds the result, and each output (`print`, `json`, `prometheus`,
//! `chart`, `html`) only shows that.

mod analyse;
mod explain;
mod fail_on;
#[cfg(test)]
pub mod fuzz;
mod model;
mod output;
mod read;
mod sites;
mod units;

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

use flarena_shared::system_error::reason;

use crate::{exit, output as terminal};
use analyse::ProcessReport;
use fail_on::Condition;
use output::{chart, html, json, print, prometheus, write, Limits, DRAWN};
use read::FileReport;

/// Tables, verdicts and charts from markers and NVFlare's `[RSS]` log lines
///
/// Reads JSON-line markers (FLARENA_MARKER_FILE), flarena's and NVFlare's own `[RSS]` lines inside
/// any log, plain or gzip, of many processes and sites at once. Says per process whether its memory
/// is flat, whether the program or the allocator holds what it gains, and what to do about it.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Marker files or logs, plain or gzip; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// Show every process; otherwise those that need attention come first and long lists end early
    #[arg(long)]
    all: bool,
    /// Write charts of every process as one SVG picture
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write tables and charts as one self-contained HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write a node_exporter textfile-collector file
    #[arg(long, value_name = "FILE")]
    prometheus: Option<PathBuf>,
    /// Exit with status 1 when a process meets CONDITION: growth:5MB/round, growth:1GB/hour,
    /// peak:8GB, limit:24h (reaches its memory limit sooner), verdict:retention; may be given several
    /// times. Growth counts when its whole 95 % interval, as printed, lies above your size, whatever the
    /// verdict; a warm-up and cyclic garbage do not count, nor does less than a minute give a rate per hour
    #[arg(long, value_name = "CONDITION")]
    fail_on: Vec<Condition>,
}

const EXAMPLES: &str = "\
Examples:
  flarena report markers.jsonl
  flarena report --html report.html site-*/log.txt* server/markers.jsonl.gz
  flarena report --fail-on growth:5MB/round --fail-on peak:8GB markers.jsonl
  flarena report --prometheus /var/lib/node_exporter/flarena.prom markers.jsonl";

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (processes, files) = read::read_all(&args.files);
    for message in files.iter().flat_map(|file| file.printed()) {
        terminal::note(message);
    }
    let reports = analyse::analyse(processes);
    if args.json {
        let mut out = BufWriter::new(io::stdout().lock());
        let written = json::write(&mut out, &reports, &files).and_then(|()| out.flush());
        written.context("cannot write to stdout")?;
    } else if !reports.is_empty() {
        terminal::print(&print::report(&reports, &Limits { all: args.all }))?;
    }
    let saved = args.save(&reports, &files);
    let failed = fails(&args.fail_on, &reports);
    Ok(ExitCode::from(match () {
        () if failed => exit::BAD_ANSWER,
        () if !saved || files.iter().any(|file| file.lost) => exit::UNREADABLE,
        () => 0,
    }))
}

impl Args {
    /// Writes the files that were asked for; one that cannot be written does not stop the others.
    fn save(&self, reports: &[ProcessReport], files: &[FileReport]) -> bool {
        let limits = Limits { all: self.all };
        let (drawn, more) = limits.shown(reports, DRAWN);
        let outputs: [(&Option<PathBuf>, &dyn Fn() -> String); 3] = [
            (&self.svg, &|| chart::picture(drawn, more)),
            (&self.html, &|| html::page(reports, files, &limits)),
            (&self.prometheus, &|| prometheus::metrics(reports)),
        ];
        let mut saved = true;
        for (path, text) in outputs {
            let Some(path) = path else { continue };
            if let Err(error) = write::replace(path, text().as_bytes()) {
                let (path, why) = (path.display(), reason(&error));
                terminal::note(format_args!("{path}: cannot be written: {why}"));
                saved = false;
            }
        }
        saved
    }
}

fn fails(conditions: &[Condition], reports: &[ProcessReport]) -> bool {
    let mut failed = false;
    for report in reports {
        let met = conditions.iter().filter_map(|one| one.met_by(report));
        for what in met {
            terminal::note(format_args!("{}: {what}", units::printable(&report.name())));
            failed = true;
        }
    }
    failed
}
