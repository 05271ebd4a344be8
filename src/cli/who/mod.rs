//! `flarena who`: the lines of a program that allocated its live memory, and the references to its
//! largest objects.

mod holders;
mod page;
pub mod phrases;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{anyhow, ensure};
use clap::value_parser;
use flarena_shared::sites::Who;

use crate::control::{self, Request, STATS_TIMEOUT};
use crate::output;
use crate::proc::{parse_pid, Process};

/// Show which lines of a program allocated the memory of a live process
///
/// Lists the memory that is in use now, by the line that allocated it (a site). Start the process with
/// `flarena run --sites` (FLARENA_SITES=on) to record all sites, or record from now on with --start.
/// Ages are in rounds. Figures of small blocks are estimates from samples; ERROR is their standard error.
#[derive(clap::Args)]
#[command(
    override_usage = "flarena who <PID> [OPTIONS]",
    after_help = "Examples:
  flarena who 4242
  flarena who 4242 --start                  # record blocks from now on
  flarena who 4242 --holders                # of the first site
  flarena who 4242 --holders 3
  flarena who 4242 --folded > stacks.txt    # for flamegraph.pl, speedscope

Exit status: 0 success; 3 the process does not exist, refuses, runs without flarena, or records no sites"
)]
pub struct Args {
    /// Process id
    #[arg(value_parser = parse_pid)]
    pid: i32,
    /// Record the sites of blocks that the process allocates from now on, until it ends
    #[arg(long, conflicts_with_all = ["holders", "folded", "json"])]
    start: bool,
    /// Show which references keep the largest arrays, tensors and bytes objects of this site alive; SITE is
    /// a number of the list, by default that of the site with most bytes
    #[arg(long, value_name = "SITE", num_args = 0..=1, value_parser = parse_site,
          conflicts_with = "folded")]
    holders: Option<Option<u32>>,
    /// Print folded stacks with bytes, for flame graphs
    #[arg(long, conflicts_with = "json")]
    folded: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Seconds that --holders waits: the process answers when its main thread runs Python code
    #[arg(long, value_name = "SECONDS", default_value = "30",
          value_parser = value_parser!(u64).range(1..=3600))]
    timeout: u64,
}

/// Parses the number of a site from the command line.
fn parse_site(text: &str) -> Result<u32, String> {
    let site = text.parse().ok().filter(|site| *site > 0);
    site.ok_or_else(|| "write a site's number, such as 3; flarena who PID lists them".to_owned())
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let process = Process::find(args.pid)?;
    if args.start {
        return start(&process);
    }
    let answer = control::ask_when_open(&process, Request::Who, STATS_TIMEOUT)?;
    let who: Who = serde_json::from_str(answer.line())?;
    if let Some(named) = args.holders {
        let largest = || page::largest_site(&who);
        let site = named.or_else(largest).ok_or_else(|| match who.on {
            true => anyhow!("process {} has no live block with a site", args.pid),
            false => anyhow!(why_off(args.pid, &who)),
        })?;
        let timeout = Duration::from_secs(args.timeout);
        let sites = page::sites_of_same_stack(&who, site);
        return holders::run(&process, &sites, timeout, args.json);
    }
    if args.json {
        output::print(answer.line())?;
    }
    ensure!(who.on, why_off(args.pid, &who));
    if args.folded {
        output::print(&page::folded(&who))?;
    } else if !args.json {
        let width = output::terminal_width();
        output::print(&page::render(&process.name(), args.pid, &who, width))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn start(process: &Process) -> anyhow::Result<ExitCode> {
    let pid = process.pid;
    let answer = control::ask_when_open(process, Request::Sites, STATS_TIMEOUT)?;
    ensure!(
        answer.text("error").is_none(),
        "process {pid} runs an older flarena, which records sites from its start only"
    );
    let who: Who = serde_json::from_str(answer.line())?;
    ensure!(
        who.on && (who.python || who.reason.is_none()),
        why_off(pid, &who)
    );
    if !who.python {
        output::note(format!(
            "process {pid} runs no Python: its sites are threads and libraries"
        ));
    }
    output::print(&format!(
        "process {pid} records the sites of blocks that it allocates from now on; later: flarena who {pid}\n"
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// The page of a live process for this width, or why there is none.
pub fn page_of(process: &Process, width: Option<usize>) -> anyhow::Result<String> {
    let answer = control::ask(process, Request::Who, STATS_TIMEOUT)?;
    let who: Who = serde_json::from_str(answer.line())?;
    ensure!(who.on, why_off(process.pid, &who));
    Ok(page::render(&process.name(), process.pid, &who, width))
}

/// Why a process records no sites, and what to do.
fn why_off(pid: i32, who: &Who) -> String {
    match &who.reason {
        Some(reason) => {
            let what = if who.on { "Python lines" } else { "sites" };
            format!("process {pid} records no {what}: {}", output::plain(reason))
        }
        None => format!(
            "process {pid} records no sites. `flarena who {pid} --start` records blocks from now on, \
             `flarena run --sites` (FLARENA_SITES=on) from the start of a process"
        ),
    }
}
