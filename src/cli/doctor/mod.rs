//! `flarena doctor`: findings about this machine, a command or a live process, with remedies.

mod allocator;
mod bindings;
mod command;
mod environment;
mod finding;
mod huge_pages;
mod jobs;
mod limits;
mod nvflare;
mod outside_malloc;
mod pools;
mod python;
mod subject;
mod system;
mod temporary;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueHint;
use flarena_shared::role::{self, Surroundings};
use serde_json::{json, Value};

use crate::library::{self, Library, Unusable};
use crate::proc::{parse_pid, Cgroup, Process};
use crate::{exit, output};
use finding::{Finding, Level};
use subject::Subject;
use system::System;

/// Check whether flarena works here, find mistakes in the settings, and name remedies
///
/// Without an argument it examines this machine and this environment. With a PID it examines a live
/// process, with or without flarena. With -- COMMAND it examines a command, without running it.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  flarena doctor
  flarena doctor 4242
  flarena doctor --all 4242
  flarena doctor -- python3 -I train.py
  flarena doctor --json 4242 | jq '.findings[] | select(.level == \"error\")'

Exit status: 0 no warning and no error; 1 at least one; 3 the process does not exist \
or cannot be read")]
pub struct Args {
    /// Process id
    #[arg(value_parser = parse_pid)]
    pid: Option<i32>,
    /// Show every finding, also those that are fine
    #[arg(long)]
    all: bool,
    /// Print one JSON object, with every finding
    #[arg(long)]
    json: bool,
    /// Command to examine; it is not started
    #[arg(last = true, conflicts_with = "pid", value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let system = System::read();
    let (subject, findings) = match args.pid {
        Some(pid) => examine_process(pid, system)?,
        None => examine_machine(&args.command, &system),
    };
    if args.json {
        output::print_json(&json!({ "subject": subject, "findings": findings }))?;
    } else {
        let width = output::terminal_width().map(usize::from);
        output::print(&finding::render(&findings, width, args.all))?;
    }
    let is_bad = findings
        .iter()
        .any(|finding| finding.level >= Level::Warning);
    Ok(if is_bad {
        ExitCode::from(exit::PROBLEM)
    } else {
        ExitCode::SUCCESS
    })
}

fn examine_machine(command: &[OsString], system: &System) -> (Value, Vec<Finding>) {
    let get = |name: &str| std::env::var_os(name);
    let library = library::find();
    let mut findings = system.findings();
    if command.is_empty() {
        findings.extend(huge_pages::finding(&huge_pages::read()));
    }
    findings.push(judge_library(&library));
    let own = Process::find(std::process::id() as i32).ok();
    let cgroup = own.as_ref().and_then(Cgroup::of);
    findings.extend(limits::cgroup_findings(cgroup.as_ref(), system));
    findings.extend(environment::findings(&get, &|path| PathBuf::from(path)));
    let names = std::env::vars_os().map(|(name, _)| name);
    findings.extend(environment::unknown_settings(names));
    let is_nvflare = role::identify(
        command.iter().map(|word| word.as_bytes()),
        Surroundings::default(),
    )
    .role()
    .is_some();
    findings.extend(temporary::finding(
        &get,
        &|path| PathBuf::from(path),
        is_nvflare,
    ));
    if command.is_empty() {
        return (json!({ "machine": system.machine }), findings);
    }
    findings.extend(command::findings(command, library.as_ref().ok()));
    (json!({ "command": command[0].to_string_lossy() }), findings)
}

fn judge_library(library: &Result<Library, Unusable>) -> Finding {
    match library {
        Ok(library) => {
            let (path, version) = (library.path.display(), output::plain(&library.version));
            let fact = format!("{path} {version} loads here");
            if library.hooks.is_some() {
                return Finding::ok("loadable", fact);
            }
            let fact = fact + ", but without its Python hooks: no stage of NVFlare is marked";
            Finding::note("loadable", fact).remedy("install the whole package (pip or Debian)")
        }
        Err(unusable) => {
            let repair = match (&unusable.path, std::env::var_os("FLARENA_LIB")) {
                (Some(_), Some(_)) => "correct FLARENA_LIB, or unset it",
                (Some(_), None) => "correct the file, or install flarena again",
                (None, _) => "install flarena here",
            };
            let remedy = format!("{repair}; until then jobs start with the system's malloc");
            Finding::error("loadable", output::plain(&unusable.to_string())).remedy(remedy)
        }
    }
}

/// The rules about a live process.
const RULES: &[fn(&Subject) -> Option<Finding>] = &[
    nvflare::kit_arenas,
    nvflare::server_arenas,
    nvflare::job_cleanup,
    nvflare::kit_start,
    jobs::left_behind,
    environment::unreadable,
    temporary::of_process,
    limits::swap,
    system::always_huge,
    outside_malloc::memory,
    outside_malloc::outside_malloc,
    outside_malloc::arrow,
    outside_malloc::files,
    outside_malloc::shared,
    outside_malloc::devices,
    outside_malloc::bundled_mimalloc,
    pools::onnx_runtime,
    pools::java,
    pools::gpu_cache,
    python::hooks,
    python::garbage,
    python::pymalloc,
];

/// Rules that may find several things, such as bad settings.
const LISTS: &[fn(&Subject) -> Vec<Finding>] = &[
    allocator::findings,
    environment::of_process,
    limits::of_process,
    pools::jemallocs,
];

fn examine_process(pid: i32, system: System) -> anyhow::Result<(Value, Vec<Finding>)> {
    let subject = Subject::read(pid, system)?;
    if subject.status.is_zombie {
        anyhow::bail!("process {pid} has ended (zombie): its parent has not waited for it yet");
    }
    if subject.maps.is_empty() && subject.arguments.is_empty() {
        anyhow::bail!("process {pid} is a kernel thread");
    }
    let mut findings: Vec<Finding> = LISTS.iter().flat_map(|list| list(&subject)).collect();
    findings.extend(RULES.iter().filter_map(|rule| rule(&subject)));
    let comm = output::plain(&subject.comm);
    Ok((
        json!({ "pid": pid, "comm": comm, "rss_bytes": subject.status.rss_bytes }),
        findings,
    ))
}
