//! `flarena doctor`: findings about this machine, a command or a live process, with remedies.
//!
//! A `Subject` is read once, the rules in the table below judge it, and `finding` prints what they found. The rules are
//! pure: only `subject`, `bindings` and `jobs` read. A new rule is a function and a row.

mod bindings;
mod finding;
mod jobs;
mod machine;
mod memory;
mod nvflare;
mod program;
mod subject;
#[cfg(test)]
mod tests;

use std::env::consts::ARCH;
use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{bail, Context};
use clap::ValueHint;
use serde_json::json;

use crate::proc::parse_pid;
use crate::{exit, output};
use finding::{Finding, Level};
use subject::{Kind, Subject};
use Rule::{Each, One};

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
    let subject = match args.pid {
        Some(pid) => match Subject::live(pid)? {
            subject if subject.status.is_zombie => {
                bail!("process {pid} has ended (zombie): its parent has not waited for it yet")
            }
            subject if subject.maps.is_empty() && subject.arguments.is_empty() => {
                bail!("process {pid} is a kernel thread")
            }
            subject => subject,
        },
        None => Subject::here(args.command).context("/proc is not readable")?,
    };
    let findings = judge(&subject);
    if args.json {
        let about = match subject.kind {
            Kind::Machine => json!({ "machine": ARCH }),
            Kind::Command => json!({ "command": subject.arguments[0].to_string_lossy() }),
            Kind::Process => json!({
                "pid": args.pid,
                "comm": output::plain(&subject.comm),
                "rss_bytes": subject.status.rss_bytes,
            }),
        };
        output::print_json(&json!({ "subject": about, "findings": findings }))?;
    } else {
        let width = output::terminal_width();
        output::print(&finding::render(&findings, width, args.all))?;
    }
    Ok(match findings.iter().map(|finding| finding.level).max() {
        Some(Level::Warning | Level::Error) => ExitCode::from(exit::PROBLEM),
        Some(Level::Ok | Level::Note) | None => ExitCode::SUCCESS,
    })
}

type Name = &'static str;
type Kinds = &'static [Kind];

/// A rule judges what the subject has read: the name of its findings, the subjects that it is for, and when it finds
/// something, with its level, sentence and remedy.
enum Rule {
    One(Name, Kinds, fn(&Subject) -> Option<Finding>),
    Each(Name, Kinds, fn(&Subject) -> Vec<Finding>),
}

const MACHINE: Kinds = &[Kind::Machine];
const COMMAND: Kinds = &[Kind::Command];
const HERE: Kinds = &[Kind::Machine, Kind::Command];
const PROCESS: Kinds = &[Kind::Process];
const PROGRAM: Kinds = &[Kind::Command, Kind::Process];
const ALL: Kinds = &[Kind::Machine, Kind::Command, Kind::Process];

/// Among findings of a level, those of the first rule come first.
const RULES: &[Rule] = &[
    One("thp-always", HERE, machine::always_huge),
    One("huge-pages", MACHINE, machine::huge_pages),
    One("loadable", HERE, machine::loadable),
    One("library", PROCESS, program::library),
    One("owner", PROCESS, program::owner),
    One("deepbind", PROCESS, program::deep_bound),
    One("channel", PROCESS, program::channel),
    One("allocator", PROCESS, program::allocator),
    One("no-decay", PROCESS, program::no_decay),
    One("unmap-hooks", PROCESS, program::unmap_hooks),
    Each("library-jemalloc", PROCESS, program::other_jemallocs),
    One("cgroup", ALL, machine::cgroup),
    Each("bad-setting", ALL, program::bad_settings),
    Each("unknown-setting", ALL, program::unknown_settings),
    Each("no-effect", ALL, program::no_effect),
    One("marker-file", ALL, program::marker_file),
    Each("malloc-conf", ALL, program::malloc_conf_faults),
    One("hugetlb", ALL, program::hugetlb),
    Each("preload-missing", ALL, program::missing_preloads),
    One("tmpfs", ALL, machine::temporary),
    One("program", COMMAND, program::program),
    One("python-isolated", PROGRAM, program::isolated_python),
    One("uncounted-garbage", PROGRAM, program::uncounted_garbage),
    One("pymalloc", PROGRAM, program::pymalloc),
    One("python-mimalloc", PROGRAM, program::python_mimalloc),
    One("kit-arenas", PROCESS, nvflare::kit_arenas),
    One("server-arenas", PROCESS, nvflare::server_arenas),
    One("job-cleanup", PROCESS, nvflare::job_cleanup),
    One("kit-foreground", PROCESS, nvflare::kit_start),
    One("job-without-library", PROCESS, nvflare::left_jobs),
    One("memory", PROCESS, memory::memory),
    One("swap", PROCESS, memory::swap),
    One("outside-malloc", PROCESS, memory::outside_malloc),
    One("arrow-pool", PROCESS, memory::arrow),
    One("file-maps", PROCESS, memory::files),
    One("shared-memory", PROCESS, memory::shared),
    One("cuda", PROCESS, memory::gpu_driver),
    One("torch-mimalloc", PROCESS, memory::torch_mimalloc),
    One("onnx-arena", PROCESS, memory::onnx_arena),
    One("java", PROCESS, memory::java),
    One("gpu-cache", PROCESS, memory::gpu_cache),
];

fn judge(subject: &Subject) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in RULES {
        let (One(id, kinds, _) | Each(id, kinds, _)) = *rule;
        if !kinds.contains(&subject.kind) {
            continue;
        }
        let found = match rule {
            One(.., find) => find(subject).into_iter().collect(),
            Each(.., find) => find(subject),
        };
        findings.extend(found.into_iter().map(|finding| Finding { id, ..finding }));
    }
    findings
}
