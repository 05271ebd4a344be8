//! `flarena doctor`: findings about this machine, a command or a live process, with remedies.

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

use anyhow::Context;
use clap::ValueHint;
use serde_json::json;

use crate::proc::parse_pid;
use crate::{exit, output};
use finding::{Finding, Level};
use subject::{Kind, Subject};

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
        Some(pid) => {
            let subject = Subject::live(pid)?;
            if subject.status.is_zombie {
                anyhow::bail!(
                    "process {pid} has ended (zombie): its parent has not waited for it yet"
                );
            }
            if subject.maps.is_empty() && subject.arguments.is_empty() {
                anyhow::bail!("process {pid} is a kernel thread");
            }
            subject
        }
        None => Subject::here(args.command).context("/proc is not readable")?,
    };
    let findings = judge(&subject);
    if args.json {
        let about = match subject.kind {
            Kind::Machine => json!({ "machine": ARCH }),
            Kind::Command => json!({ "command": subject.arguments[0].to_string_lossy() }),
            Kind::Process => {
                let comm = output::plain(&subject.process.comm());
                json!({ "pid": args.pid, "comm": comm, "rss_bytes": subject.status.rss_bytes })
            }
        };
        output::print_json(&json!({ "subject": about, "findings": findings }))?;
    } else {
        let width = output::terminal_width().map(usize::from);
        output::print(&finding::render(&findings, width, args.all))?;
    }
    let is_bad = findings
        .iter()
        .any(|finding| finding.level >= Level::Warning);
    Ok(match is_bad {
        true => ExitCode::from(exit::PROBLEM),
        false => ExitCode::SUCCESS,
    })
}

/// A rule is pure: it judges what the subject has read.
struct Rule {
    /// The name of its findings.
    id: &'static str,
    of: &'static [Kind],
    find: Find,
}

enum Find {
    One(fn(&Subject) -> Option<Finding>),
    Each(fn(&Subject) -> Vec<Finding>),
}

const MACHINE: &[Kind] = &[Kind::Machine];
const COMMAND: &[Kind] = &[Kind::Command];
const HERE: &[Kind] = &[Kind::Machine, Kind::Command];
const PROCESS: &[Kind] = &[Kind::Process];
const PROGRAM: &[Kind] = &[Kind::Command, Kind::Process];
const ALL: &[Kind] = &[Kind::Machine, Kind::Command, Kind::Process];

const fn one(id: &'static str, of: &'static [Kind], find: fn(&Subject) -> Option<Finding>) -> Rule {
    let find = Find::One(find);
    Rule { id, of, find }
}

const fn each(id: &'static str, of: &'static [Kind], find: fn(&Subject) -> Vec<Finding>) -> Rule {
    let find = Find::Each(find);
    Rule { id, of, find }
}

/// Among findings of a level, those of the first rule come first.
const RULES: &[Rule] = &[
    one("platform", HERE, machine::platform),
    one("thp-always", ALL, machine::always_huge),
    one("huge-pages", MACHINE, machine::huge_pages),
    one("loadable", HERE, machine::loadable),
    one("library", PROCESS, program::library),
    one("owner", PROCESS, program::owner),
    one("deepbind", PROCESS, program::deep_bound),
    one("channel", PROCESS, program::channel),
    one("allocator", PROCESS, program::allocator),
    one("no-decay", PROCESS, program::no_decay),
    one("unmap-hooks", PROCESS, program::unmap_hooks),
    each("library-jemalloc", PROCESS, program::other_jemallocs),
    one("cgroup", ALL, machine::cgroup),
    one("swap", PROCESS, machine::swap),
    each("bad-setting", ALL, program::bad_settings),
    each("unknown-setting", ALL, program::unknown_settings),
    one("conflicting-settings", ALL, program::conflict),
    each("no-effect", ALL, program::no_effect),
    each("malloc-conf", ALL, program::malloc_conf_faults),
    one("hugetlb", ALL, program::hugetlb),
    each("preload-missing", ALL, program::missing_preloads),
    each("other-allocator", ALL, program::other_preloads),
    one("tmpfs", ALL, machine::temporary),
    one("program", COMMAND, program::program),
    one("python-isolated", PROGRAM, program::isolated_python),
    one("uncounted-garbage", PROGRAM, program::uncounted_garbage),
    one("pymalloc", PROGRAM, program::pymalloc),
    one("python-mimalloc", PROGRAM, program::python_mimalloc),
    one("kit-arenas", PROCESS, nvflare::kit_arenas),
    one("server-arenas", PROCESS, nvflare::server_arenas),
    one("job-cleanup", PROCESS, nvflare::job_cleanup),
    one("kit-foreground", PROCESS, nvflare::kit_start),
    one(
        "job-without-library",
        PROCESS,
        nvflare::jobs_without_library,
    ),
    one("memory", PROCESS, memory::memory),
    one("outside-malloc", PROCESS, memory::outside_malloc),
    one("arrow-pool", PROCESS, memory::arrow),
    one("file-maps", PROCESS, memory::files),
    one("shared-memory", PROCESS, memory::shared),
    one("cuda", PROCESS, memory::gpu_driver),
    one("torch-mimalloc", PROCESS, memory::torch_mimalloc),
    one("onnx-arena", PROCESS, memory::onnx_arena),
    one("java", PROCESS, memory::java),
    one("gpu-cache", PROCESS, memory::gpu_cache),
];

fn judge(subject: &Subject) -> Vec<Finding> {
    let rules = RULES.iter().filter(|rule| rule.of.contains(&subject.kind));
    let find = |rule: &Rule| {
        let found = match rule.find {
            Find::One(find) => find(subject).into_iter().collect(),
            Find::Each(find) => find(subject),
        };
        let id = rule.id;
        found
            .into_iter()
            .map(move |finding| Finding { id, ..finding })
    };
    rules.flat_map(find).collect()
}
