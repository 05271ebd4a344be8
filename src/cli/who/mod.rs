//! `flarena who`: which lines of a live process hold its large blocks, and what refers to them.

mod holders;
mod page;

use std::process::ExitCode;
use std::time::Duration;

use clap::value_parser;
use flarena_shared::sites::Who;

use crate::control::{self, Request, STATS_TIMEOUT};
use crate::proc::{parse_pid, Process};
use crate::{exit, output};

/// Show which lines of a live process hold its memory
///
/// For processes started with `flarena run --sites` (FLARENA_SITES=on): the large blocks that are live
/// now, by the line that allocated them.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  flarena who 4242
  flarena who 4242 --holders 3
  flarena who 4242 --folded > stacks.txt    # for flamegraph.pl, speedscope

Exit status: 0 done; 3 the process is not there, refuses, does not run on flarena, or notes no sites")]
pub struct Args {
    /// Process id
    #[arg(value_parser = parse_pid)]
    pid: i32,
    /// Ask the process what refers to the largest arrays, tensors and bytes of this site
    #[arg(long, value_name = "SITE", value_parser = parse_site,
          conflicts_with = "folded")]
    holders: Option<u32>,
    /// Print folded stacks, bytes behind each, for flame graphs
    #[arg(long, conflicts_with = "json")]
    folded: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Seconds to wait for --holders: the process answers when its main thread runs Python
    #[arg(long, value_name = "SECONDS", default_value = "30",
          value_parser = value_parser!(u64).range(1..=3600))]
    timeout: u64,
}

/// A site's number as a person types it.
fn parse_site(text: &str) -> Result<u32, String> {
    let site = text.parse().ok().filter(|site| *site > 0);
    site.ok_or_else(|| "write a site's number, such as 3; flarena who PID lists them".to_owned())
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let process = Process::find(args.pid)?;
    let answer = control::ask_when_open(&process, Request::Who, STATS_TIMEOUT)?;
    let who: Who = serde_json::from_str(answer.line())?;
    if let Some(site) = args.holders {
        let patience = Duration::from_secs(args.timeout);
        return holders::run(&process, &page::alike(&who, site), patience, args.json);
    }
    if args.json {
        output::print(answer.line())?;
    }
    if !who.on {
        output::note(why_off(args.pid, &who));
        return Ok(ExitCode::from(exit::UNREADABLE));
    }
    if args.folded {
        output::print(&page::folded(&who))?;
    } else if !args.json {
        output::print(&page::render(&process.name(), args.pid, &who))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Why a process tells no sites, and what to do.
fn why_off(pid: i32, who: &Who) -> String {
    match &who.reason {
        Some(reason) => format!("process {pid} notes no sites: {}", output::plain(reason)),
        None => format!(
            "process {pid} notes no sites: start it with flarena run --sites, or FLARENA_SITES=on"
        ),
    }
}
