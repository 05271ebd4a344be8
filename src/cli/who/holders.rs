//! `flarena who PID --holders SITE`: repeats the request until the process's main thread has run
//! the search for references.

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::{json, Value};

use crate::control::{self, Request, STATS_TIMEOUT};
use crate::output::{self, plain};
use crate::proc::Process;
use crate::units::bytes;

const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Number of printed chains, as many as the process reports per site.
const MAX_CHAINS: usize = 3;

/// `sites` are all sites of one line; the first one is the requested one.
pub fn run(
    process: &Process,
    sites: &[u32],
    timeout: Duration,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let deadline = Instant::now() + timeout;
    let answers = sites.iter().map(|site| ask(process, *site, deadline));
    let answers = answers.collect::<anyhow::Result<Vec<_>>>()?;
    let (site, holders) = (sites[0], joined(sites[0], &answers));
    if json {
        output::print_json(&holders)?;
    } else {
        output::print(&render(process.pid, site, &holders))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn ask(process: &Process, site: u32, deadline: Instant) -> anyhow::Result<Value> {
    let pid = process.pid;
    loop {
        let answer = control::ask(process, Request::Holders(site), STATS_TIMEOUT)?;
        ensure!(
            answer.value("python") == Some(true),
            "process {pid} records no Python frames: start it with `flarena run --sites`"
        );
        ensure!(
            answer.value("late") != Some(true),
            "process {pid}: --holders needs sites from its start (`flarena run --sites`), or `flarena.holders()` \
             in the program"
        );
        let mut document: Value = serde_json::from_str(answer.line())?;
        let holders = document["holders"].take();
        if !holders.is_null() {
            return Ok(holders);
        }
        ensure!(
            Instant::now() <= deadline,
            "process {pid}: its main thread, which answers between two instructions of Python code, has not \
             answered in time: try again, or wait longer with --timeout"
        );
        thread::sleep(POLL_INTERVAL);
    }
}

/// Combines the answers for the sites of one line: the largest objects of all.
fn joined(site: u32, answers: &[Value]) -> Value {
    let chains = answers.iter().filter_map(|one| one["chains"].as_array());
    let mut chains: Vec<&Value> = chains.flatten().collect();
    chains.sort_by_key(|chain| std::cmp::Reverse(chain["bytes"].as_u64()));
    chains.truncate(MAX_CHAINS);
    let blocks: u64 = answers
        .iter()
        .filter_map(|one| one["blocks"].as_u64())
        .sum();
    let complete = answers.iter().all(|one| one["complete"] == true);
    json!({"site": site, "blocks": blocks, "complete": complete, "chains": chains})
}

fn render(pid: i32, site: u32, holders: &Value) -> String {
    let chains = holders["chains"].as_array().map_or(&[][..], Vec::as_slice);
    let is_complete = holders["complete"] == true;
    if chains.is_empty() {
        let time = if is_complete { "" } else { " in time" };
        return format!("{pid}: no array, tensor or bytes of site {site} was found{time}\n");
    }
    let mut page = format!("{pid}: the largest objects of site {site}\n");
    for chain in chains {
        let text = |name: &str| plain(chain[name].as_str().unwrap_or("?"));
        let size = bytes(chain["bytes"].as_u64().unwrap_or(0));
        let object = text("object");
        page += &match text("end") == "not found in time" {
            true => format!("  {object} {size}: its holder was not found in time\n"),
            false => format!("  {object} {size}, held by {}\n", text("text")),
        };
    }
    if !is_complete {
        page += "  (the search for objects ended at its limit of CPU time: there may be more)\n";
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chains_of_all_sites_of_a_line_are_sorted_by_size() {
        let answer = |site: u32, sizes: &[u64], complete: bool| {
            let chains: Vec<Value> = sizes.iter().map(|bytes| json!({"bytes": bytes})).collect();
            json!({"site": site, "blocks": sizes.len(), "complete": complete, "chains": chains})
        };
        let both = joined(9, &[answer(9, &[7, 5], true), answer(3, &[8, 6], false)]);
        let expected = json!({"site": 9, "blocks": 4, "complete": false,
            "chains": [{"bytes": 8}, {"bytes": 7}, {"bytes": 6}]});
        assert_eq!(both, expected);
    }

    #[test]
    fn a_chain_is_one_line() {
        let holders = serde_json::json!({"complete": true, "chains": [
            {"object": "ndarray", "bytes": 2 << 20, "end": "cycle",
             "text": "cycle: Task.client_tasks -> ClientTask.task -> Task"}]});
        assert_eq!(
            render(7, 3, &holders),
            "7: the largest objects of site 3\n  ndarray 2.00 MB, held by cycle: \
             Task.client_tasks -> ClientTask.task -> Task\n"
        );
    }

    #[test]
    fn a_search_that_ended_at_its_limit_says_so_and_names_no_holder() {
        let cut = serde_json::json!({"complete": false, "chains": [
            {"object": "ndarray", "bytes": 2 << 20, "end": "not found in time",
             "text": "ndarray: not found in time"}]});
        assert_eq!(
            render(7, 3, &cut),
            "7: the largest objects of site 3\n  ndarray 2.00 MB: its holder was not found in time\n  \
             (the search for objects ended at its limit of CPU time: there may be more)\n"
        );
        let none = |complete| {
            render(
                7,
                3,
                &serde_json::json!({"complete": complete, "chains": []}),
            )
        };
        assert_eq!(
            none(true),
            "7: no array, tensor or bytes of site 3 was found\n"
        );
        assert!(none(false).ends_with("was found in time\n"));
    }
}
