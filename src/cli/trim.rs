//! `flarena trim`: makes live processes return their free memory.

use std::process::ExitCode;
use std::time::Duration;

use clap::ArgGroup;
use serde_json::json;

use crate::control::{self, AskError, Request, Stats};
use crate::proc::{parse_pid, Process};
use crate::stats::seconds;
use crate::units::bytes;
use crate::{exit, output};

/// Make live processes return their free memory to the system
///
/// The background thread of the process does the work; the other threads continue. A Python program
/// first runs its garbage collector (FLARENA_GC).
#[derive(clap::Args)]
#[command(after_help = "Examples:
  flarena trim 4242
  flarena trim --all

Exit status: 0 success, also if nothing was free; 3 a process does not exist, refused, \
or runs without flarena",
    group = ArgGroup::new("target").required(true).args(["pid", "all"]))]
pub struct Args {
    /// Process ids
    #[arg(value_parser = parse_pid)]
    pid: Vec<i32>,
    /// All processes on flarena that this user may trim
    #[arg(long)]
    all: bool,
    /// Print one JSON object per process
    #[arg(long)]
    json: bool,
    /// Seconds to wait for each process
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    timeout: Duration,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let pid = |process: &Process| process.pid;
    let pids = match args.all {
        true => control::listening().iter().map(pid).collect(),
        false => args.pid,
    };
    let mut status = ExitCode::SUCCESS;
    for pid in pids {
        match trim(pid, args.timeout) {
            Ok(answer) => show(pid, &answer, args.json)?,
            Err(error) => {
                status = ExitCode::from(exit::UNREADABLE);
                if args.json {
                    output::print_json(&json!({ "pid": pid, "error": error.to_string() }))?;
                } else {
                    output::note(error);
                }
            }
        }
    }
    Ok(status)
}

fn trim(pid: i32, timeout: Duration) -> Result<Stats, AskError> {
    control::ask_when_open(&Process::find(pid)?, Request::Trim, timeout)
}

fn show(pid: i32, answer: &Stats, json: bool) -> anyhow::Result<()> {
    if json {
        let line = json!({
            "pid": pid,
            "released_bytes": answer.number("released_bytes"),
            "result": answer.value::<i64>("result"),
            "collected": answer.value::<bool>("collected"),
            "not_collected_because": answer.text("not_collected_because"),
            "gc_released_bytes": answer.number("gc_released_bytes"),
        });
        return output::print_json(&line);
    }
    output::print(&format!("{pid}: {}", outcome(answer)))
}

/// The result of a trim as text; `top` shows it, too.
pub fn outcome(answer: &Stats) -> String {
    returned(answer) + &collected(answer)
}

/// The result of Python's garbage collection before the trim.
fn collected(answer: &Stats) -> String {
    match (
        answer.value("collected"),
        answer.number("gc_released_bytes"),
    ) {
        (Some(true), Some(released)) if released > 0 => {
            format!(", {} of it cyclic garbage", bytes(released))
        }
        (Some(false), _) => {
            // A library of an earlier version gives no reason.
            let reason = answer.text("not_collected_because");
            let reason = reason.map_or(String::new(), |reason| format!(" ({reason})"));
            format!("; Python's collector did not run{reason}")
        }
        _ => String::new(),
    }
}

fn returned(answer: &Stats) -> String {
    match (answer.value("result"), answer.number("released_bytes")) {
        (Some(-1), _) => "its allocator does not support a trim".to_owned(),
        (_, Some(released)) if released > 0 => format!("{} returned", bytes(released)),
        (Some(1), _) => "memory returned".to_owned(),
        _ => "nothing to return".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcome_names_what_was_returned_and_collected() {
        for (answer, words) in [
            (
                r#"{"released_bytes":2097152,"result":1}"#,
                "2.00 MB returned",
            ),
            (r#"{"released_bytes":0,"result":0}"#, "nothing to return"),
            (
                r#"{"released_bytes":0,"result":-1}"#,
                "its allocator does not support a trim",
            ),
            (r#"{"result":1}"#, "memory returned"),
            (
                r#"{"released_bytes":3145728,"result":1,"collected":true,"gc_released_bytes":2097152}"#,
                "3.00 MB returned, 2.00 MB of it cyclic garbage",
            ),
            (
                r#"{"released_bytes":1048576,"result":1,"collected":false,"gc_released_bytes":0}"#,
                "1.00 MB returned; Python's collector did not run",
            ),
            (
                r#"{"released_bytes":0,"result":0,"collected":false,"not_collected_because":"reason"}"#,
                "nothing to return; Python's collector did not run (reason)",
            ),
            (
                r#"{"released_bytes":0,"result":0,"collected":true,"gc_released_bytes":0}"#,
                "nothing to return",
            ),
            (r#"{}"#, "nothing to return"),
        ] {
            assert_eq!(outcome(&Stats::parse(answer).unwrap()), words, "{answer}");
        }
    }
}
