//! `--watch`: one line per sample, as in vmstat, for a terminal and for a pipe.

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use crate::control::{self, AskError, Request, Stats, STATS_TIMEOUT};
use crate::output;
use crate::proc::{Process, ReadError};
use crate::units::{bytes_or_dash, or_dash};

/// The heading is repeated before it scrolls off the screen.
const LINES_PER_HEADING: u64 = 20;

pub fn run(process: &Process, interval: Duration, json: bool) -> anyhow::Result<ExitCode> {
    let mut next = Instant::now();
    for count in 0.. {
        let stats = match sample(process, count == 0) {
            Ok(stats) => stats,
            Err(AskError::Process(ReadError::Gone(_))) if count > 0 => break,
            Err(error) => return Err(error.into()),
        };
        if json {
            output::print(stats.line())?;
        } else {
            if count % LINES_PER_HEADING == 0 {
                output::print(&heading())?;
            }
            output::print(&line(&stats))?;
        }
        // After a late sample the next one follows at once. The samples that were missed are
        // skipped.
        next = (next + interval).max(Instant::now());
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks for the statistics.
fn sample(process: &Process, is_first: bool) -> Result<Stats, AskError> {
    if process.has_ended() {
        return Err(ReadError::Gone(process.pid).into());
    }
    let ask = if is_first {
        control::ask_when_open
    } else {
        control::ask
    };
    let answer = ask(process, Request::Stats, STATS_TIMEOUT);
    match answer {
        Err(_) if ends_soon(process) => Err(ReadError::Gone(process.pid).into()),
        answer => answer,
    }
}

/// Whether the process ends within half a second. An exiting process closes its sockets first.
fn ends_soon(process: &Process) -> bool {
    (0..10).any(|_| {
        process.has_ended() || {
            thread::sleep(Duration::from_millis(50));
            false
        }
    })
}

/// The headings of the sizes, and their fields.
const SIZES: [(&str, &str); 6] = [
    ("RSS", "rss_bytes"),
    ("LIVE", "live_bytes"),
    ("CACHED", "recycled_bytes"),
    ("RETAINED", "retained_bytes"),
    ("SWAP", "swap_bytes"),
    ("CGROUP", "cgroup_bytes"),
];

fn heading() -> String {
    row(SIZES.map(|(name, _)| name.to_owned()), "ROUND", "STAGE")
}

fn line(stats: &Stats) -> String {
    let sizes = SIZES.map(|(_, field)| bytes_or_dash(stats.number(field)));
    let round = or_dash(stats.signed("round"));
    let stage = output::plain(stats.text("stage").unwrap_or("-"));
    row(sizes, &round, &stage)
}

fn row(sizes: [String; 6], round: &str, stage: &str) -> String {
    let sizes: String = sizes.iter().map(|size| format!("{size:>10}")).collect();
    format!("{sizes}{round:>6}  {stage}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_below_their_headings() {
        let stats = r#"{"rss_bytes":1048576,"round":12,"stage":"send"}"#;
        let line = line(&Stats::parse(stats).unwrap());
        assert_eq!(
            line.find("1.00 MB").unwrap() + 7,
            heading().find("RSS").unwrap() + 3
        );
        assert_eq!(line.find("send"), heading().find("STAGE"));
    }

    #[test]
    fn a_process_with_the_same_pid_and_another_start_time_is_gone() {
        let mut process = Process::find(std::process::id() as i32).unwrap();
        process.start_ticks += 1;
        assert!(matches!(
            sample(&process, true),
            Err(AskError::Process(ReadError::Gone(_)))
        ));
    }
}
