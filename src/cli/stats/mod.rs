//! `flarena stats`: the memory of one live process, as its allocator reports it.

pub mod sheet;
mod watch;

use std::process::ExitCode;
use std::time::Duration;

use crate::control::{self, Request, STATS_TIMEOUT};
use crate::output;
use crate::proc::{parse_pid, Process};

/// Show the memory of a live process: live, cached, retained, and outside malloc
#[derive(clap::Args)]
#[command(
    override_usage = "flarena stats <PID> [OPTIONS]",
    after_help = "Examples:
  flarena stats 4242
  flarena stats 4242 --all
  flarena stats 4242 --watch 5
  flarena stats 4242 --json | jq .live_bytes

Exit status: 0 success, also when a watched process ends; 3 the process does not exist, \
refuses, or runs without flarena"
)]
pub struct Args {
    /// Process id
    #[arg(value_parser = parse_pid)]
    pid: i32,
    /// Also show the internals of recycler, governor and allocator, and all settings
    #[arg(long, conflicts_with_all = ["watch", "json"])]
    all: bool,
    /// Print a line at this interval in seconds, until the process ends
    #[arg(long, value_name = "SECONDS", num_args = 0..=1,
          default_missing_value = "1", value_parser = seconds)]
    watch: Option<Duration>,
    /// Print JSON, one object per line
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
    if let Some(interval) = args.watch {
        return watch::run(&process, interval, args.json);
    }
    let stats = control::ask_when_open(&process, Request::Stats, STATS_TIMEOUT)?;
    if args.json {
        output::print(stats.line())?;
    } else {
        output::print(&sheet::render(
            &process.name(),
            process.pid,
            &stats,
            args.all,
        ))?;
    }
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
