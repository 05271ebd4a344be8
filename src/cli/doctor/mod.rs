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

use flarena_shared::role::{self, Surroundings};
use serde_json::{json, Value};

use crate::library::{self, Library, Unusable};
use crate::proc::{parse_pid, Cgroup, Process, ReadError};
use crate::{completions, exit, output};
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
    #[arg(value_parser = parse_pid, add = completions::pids_with_library())]
    pid: Option<i32>,
    /// Show every finding, also those that are fine
    #[arg(long)]
    all: bool,
    /// Print one JSON object, with every finding
    #[arg(long)]
    json: bool,
    /// Command to examine; it is not started
    #[arg(last = true, conflicts_with = "pid", value_name = "COMMAND", add = completions::command())]
    command: Vec<OsString>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let system = System::read();
    let (subject, findings) = match args.pid {
        Some(pid) => examine_process(pid, &system)?,
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

fn examine_process(pid: i32, system: &System) -> anyhow::Result<(Value, Vec<Finding>)> {
    let subject = Subject::read(pid)?;
    if subject.status.is_zombie {
        anyhow::bail!("process {pid} has ended (zombie): its parent has not waited for it yet");
    }
    if subject.maps.is_empty() && subject.arguments.is_empty() {
        anyhow::bail!("process {pid} is a kernel thread");
    }
    let get = |name: &str| subject.get(name);
    let mut findings = allocator::findings(&subject);
    findings.extend(nvflare::findings(&subject));
    if subject.library().is_some() {
        findings.extend(jobs::left_behind(&subject));
    }
    match &subject.environment {
        Ok(environment) => {
            let inside = |path: &str| subject.process.inside(path);
            findings.extend(environment::findings(&get, &inside));
            findings.extend(environment::unknown_settings(environment.names()));
            let is_nvflare = subject.role().is_some();
            findings.extend(temporary::finding(&get, &inside, is_nvflare));
        }
        Err(error) => findings.push(unreadable_environment(error)),
    }
    findings.extend(limits::cgroup_findings(subject.cgroup.as_ref(), system));
    findings.extend(limits::swap_finding(&subject.status));
    findings.extend(always_huge(&subject, system));
    let status = &subject.status;
    let stats = subject.stats.as_ref().ok();
    findings.push(outside_malloc::memory(status, &subject.maps, stats, pid));
    findings.extend(outside_malloc::findings(
        status,
        &subject.maps,
        stats,
        &get,
        pid,
    ));
    findings.extend(pools::findings(&subject));
    if python::is_python(&subject.program) || subject.maps_file("libpython3") {
        let settings = environment::settings(&get);
        let hooks = python::hook_findings(&subject.arguments, settings.wants_hooks());
        findings.extend(hooks);
        findings.extend(python::inactive_gc(&settings));
        let arenas = stats.and_then(|stats| stats.number("pymalloc_bytes"));
        findings.extend(python::allocators(
            &subject.program,
            &subject.maps,
            &get,
            arenas,
        ));
    }
    let comm = output::plain(&subject.comm);
    Ok((
        json!({ "pid": pid, "comm": comm, "rss_bytes": status.rss_bytes }),
        findings,
    ))
}

fn unreadable_environment(error: &ReadError) -> Finding {
    Finding::note(
        "environment",
        format!("the environment is not readable, so the settings are not checked: {error}"),
    )
    .remedy("run the doctor as the user of the process, or as root")
}

/// A large heap in huge pages, without the library, on a machine that gives them to every program.
fn always_huge(subject: &Subject, system: &System) -> Option<Finding> {
    let huge = subject.rollup.as_ref()?.anon_huge_bytes;
    let is_always = system.huge_pages.as_deref() == Some("always");
    if !is_always
        || subject.library().is_some()
        || huge * 2 < subject.status.anon_bytes.max(1 << 27)
    {
        return None;
    }
    let fact = format!(
        "{} are huge pages, which the system gives to every program; they stay resident while any part of 2 MB is in use",
        crate::units::bytes(huge)
    );
    Some(system::without_huge_pages(Finding::warning("thp-always", fact)).bytes(huge))
}
