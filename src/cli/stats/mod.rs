//! `flarena stats`: the memory of one live process, as its allocator reports it.

pub mod sheet;

use std::process::ExitCode;
use std::time::Duration;

use crate::control::{self, Request, STATS_TIMEOUT};
use crate::output;
use crate::proc::{parse_pid, Process};

/// Show the memory of a live process: live, cached, retained, and outside malloc
#[derive(clap::Args)]
#[command(after_help = "Examples:
  flarena stats 4242
  flarena stats 4242 --all
  flarena stats 4242 --json | jq .live_bytes

Exit status: 0 success; 3 the process does not exist, \
refuses, or runs without flarena")]
pub struct Args {
    /// Process id
    #[arg(value_parser = parse_pid)]
    pid: i32,
    /// Also show the internals of recycler, governor and allocator, and all settings
    #[arg(long, conflicts_with = "json")]
    all: bool,
    /// Print one JSON object, on one line
    #[arg(long)]
    json: bool,
}

/// Parses a duration in seconds, with fractions, from 0.1 s to a day.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "write a number of seconds".to_owned())?;
    if !(0.1..=86_400.0).contains(&seconds) {
        return Err("write 0.1 to 86400 seconds".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let process = Process::find(args.pid)?;
    let stats = control::ask_when_open(&process, Request::Stats, STATS_TIMEOUT)?;
    output::print(&match args.json {
        true => stats.line().to_owned(),
        false => sheet::render(&process.name(), process.pid, &stats, args.all),
    })?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_a_number_from_a_tenth_of_a_second_to_a_day() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for bad in ["0", "-1", "NaN", "inf", "1e9", "x", ""] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
