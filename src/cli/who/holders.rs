//! `flarena who PID --holders SITE`: asked until the process's main thread comes to a safe point.

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::control::{self, Request, STATS_PATIENCE};
use crate::exit;
use crate::output::{self, plain};
use crate::proc::Process;
use crate::units::bytes;

const PAUSE: Duration = Duration::from_millis(100);

pub fn run(
    process: &Process,
    site: u32,
    patience: Duration,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let deadline = Instant::now() + patience;
    loop {
        let answer = control::ask(process, Request::Holders(site), STATS_PATIENCE)?;
        if answer.flag("python") != Some(true) {
            output::note(format_args!(
                "process {} reads no Python frames: start it with flarena run --sites",
                process.pid
            ));
            return Ok(ExitCode::from(exit::UNREADABLE));
        }
        let document: Value = serde_json::from_str(answer.line())?;
        let holders = document.get("holders").unwrap_or(&Value::Null);
        if !holders.is_null() {
            if json {
                output::print_json(holders)?;
            } else {
                output::print(&render(process.pid, site, holders))?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        if Instant::now() > deadline {
            output::note(format_args!(
                "process {}: its main thread did not come to run Python within {} s: \
                 try again, or wait longer with --timeout",
                process.pid,
                patience.as_secs()
            ));
            return Ok(ExitCode::from(exit::UNREADABLE));
        }
        thread::sleep(PAUSE);
    }
}

fn render(pid: i32, site: u32, holders: &Value) -> String {
    let chains = holders.get("chains").and_then(Value::as_array);
    let chains: Vec<&Value> = chains.into_iter().flatten().collect();
    if chains.is_empty() {
        return format!("{pid}: no array, tensor or bytes of site {site} was found\n");
    }
    let mut page = format!("{pid}: the largest objects of site {site}\n");
    for chain in chains {
        let text = |name| chain.get(name).and_then(Value::as_str).unwrap_or("?");
        let size = chain.get("bytes").and_then(Value::as_u64).unwrap_or(0);
        page += &format!(
            "  {} {}, held by {}\n",
            plain(text("object")),
            bytes(size),
            plain(text("text"))
        );
    }
    if holders.get("complete") == Some(&Value::Bool(false)) {
        page += "  (its time was up before all was seen)\n";
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_told_in_one_line() {
        let holders = serde_json::json!({"complete": true, "chains": [
            {"object": "ndarray", "bytes": 2 << 20, "end": "cycle",
             "text": "cycle: Task.client_tasks -> ClientTask.task -> Task"}]});
        assert_eq!(
            render(7, 3, &holders),
            "7: the largest objects of site 3\n  ndarray 2.0 MB, held by cycle: \
             Task.client_tasks -> ClientTask.task -> Task\n"
        );
        let none = serde_json::json!({"chains": []});
        assert!(render(7, 3, &none).contains("no array"));
    }
}
