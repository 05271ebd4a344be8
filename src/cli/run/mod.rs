//! `flarena run`: finds and tries the library, sets the environment, and executes the command.

mod choice;
mod inherited;
mod plan;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::ValueHint;
use flarena_shared::parse;
use flarena_shared::settings::{self, Key, LogLevel, Setting, TABLE};
use flarena_shared::system_error::reason;
use serde_json::json;

use crate::library::program::Program;
use crate::library::search::JEMALLOC;
use crate::library::{Library, Unusable};
use crate::{exit, library, output};
pub use choice::{describe as describe_fault, messages_about_unknown_names};
use choice::{value_of, Choice};
pub use plan::Environment;
use plan::{Found, Plan};

/// The pid of the launcher, which `exec` keeps for the command. The library prints messages for the
/// user only in this process, because the user started it.
const LAUNCHED: &str = "FLARENA_LAUNCHED";

/// Start a command on flarena
///
/// Finds libflarena.so, tries it in a child process, sets the environment and executes the command.
/// If the library cannot be used here, one line says why, and the command starts without it. An
/// existing LD_PRELOAD and PYTHONPATH are kept.
#[derive(clap::Args)]
#[command(after_long_help = help(&USUAL))]
pub struct Args {
    /// The allocator behind malloc
    #[arg(long, value_name = "NAME", value_parser = ["jemalloc", "glibc"], ignore_case = true)]
    allocator: Option<String>,
    /// The role whose defaults are used
    #[arg(long, value_name = "ROLE", value_parser = ["client", "server"], ignore_case = true)]
    role: Option<String>,
    /// Name the process in markers, report, top and stats. A program that it starts is NAME/program,
    /// a forked worker NAME/worker
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Write a marker with the resident memory at each stage
    #[arg(long)]
    profile: bool,
    /// Also append the markers to this file as JSON lines; %p is replaced by the pid. Implies
    /// --profile
    #[arg(long, value_name = "FILE")]
    marker_file: Option<PathBuf>,
    /// Record which line of the program allocates each large block, and a sample of the small
    /// ones, for flarena who and flarena report
    #[arg(long)]
    sites: bool,
    /// Soft memory limit, such as 8G: when less than a tenth is left, free memory is returned
    #[arg(long, value_name = "SIZE", value_parser = value_of(Key::MemoryLimit))]
    limit: Option<String>,
    /// Set any setting by its name; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE",
          value_parser = OsStringValueParser::new().try_map(Choice::parse))]
    set: Vec<Choice>,
    /// Print the environment that would be set, and do not start the command
    #[arg(long)]
    dry_run: bool,
    /// With --dry-run: print JSON
    #[arg(long, requires = "dry_run")]
    json: bool,
    /// Also say which library is preloaded
    #[arg(long)]
    verbose: bool,
    /// Print help with all settings
    #[arg(long, exclusive = true)]
    help_all: bool,
    /// The command and its arguments
    #[arg(
        trailing_var_arg = true,
        value_name = "COMMAND",
        required_unless_present_any = ["dry_run", "help_all"],
        value_hint = ValueHint::CommandWithArguments
    )]
    command: Vec<OsString>,
}

/// `cli` is the definition of the whole command line, for `--help-all`.
pub fn run(args: Args, cli: fn() -> clap::Command) -> anyhow::Result<ExitCode> {
    if args.help_all {
        output::print(&long_help(cli()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut plan = Plan::new(&|name| std::env::var_os(name));
    plan.names_library = args.verbose;
    let names = std::env::vars_os().map(|(name, _)| name);
    plan.notes.extend(messages_about_unknown_names(names));
    for choice in choices(&args) {
        plan.put(choice.name, choice.value);
    }
    plan.complete(&args.command, found_for(&args.command, library::find()));
    if plan.preloads_flarena() {
        let is_set = |key| plan.get(settings::setting(key).name).is_some();
        let settings = plan.settings();
        let notes: Vec<_> = settings.without_effect(is_set).collect();
        plan.notes.extend(notes.into_iter().map(str::to_owned));
    }
    if plan.settings().log != LogLevel::Off {
        plan.notes.iter().for_each(output::note);
    }
    if args.dry_run {
        print(&plan, args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    Ok(exec_command(&args.command, &plan))
}

fn found_for(command: &[OsString], library: Result<Library, Unusable>) -> Found<'static> {
    let program = command.first();
    Found {
        library,
        program: program.and_then(|program| Program::of(program, std::env::var_os("PATH"))),
        system_jemalloc: &|| library::system_allocator(&JEMALLOC),
        try_preload: &library::answers,
    }
}

/// The environment of a command on flarena, or why it would start without flarena.
pub fn on_flarena(
    command: &[OsString],
    allocator: &str,
    library: &Library,
) -> Result<Environment, String> {
    let mut plan = Plan::new(&|name| std::env::var_os(name));
    plan.put(settings::setting(Key::Allocator).name, allocator);
    plan.complete(command, found_for(command, Ok(library.clone())));
    match plan.preloads_flarena() {
        true => Ok(plan.environment),
        false => Err(plan.notes.join("; ")),
    }
}

/// The environment of a command without the library, with another allocator if one is named.
pub fn without_flarena(allocator: Option<&Path>, hooks: Option<&Path>) -> Environment {
    let mut plan = Plan::new(&|name| std::env::var_os(name));
    plan.use_other(allocator, hooks);
    plan.environment
}

/// `--set` comes last, so that it overrides a short option for the same setting.
fn choices(args: &Args) -> Vec<Choice> {
    let texts = [
        (Key::Allocator, &args.allocator),
        (Key::Role, &args.role),
        (Key::Name, &args.name),
        (Key::MemoryLimit, &args.limit),
    ];
    let texts = texts.into_iter();
    let texts = texts.filter_map(|(key, value)| Some(Choice::of(key, value.as_ref()?)));
    let profile = args.profile || args.marker_file.is_some();
    let others = [
        profile.then(|| Choice::of(Key::Profile, "1")),
        args.sites.then(|| Choice::of(Key::Sites, "on")),
        // An absolute path, because the job may change its directory.
        args.marker_file.as_ref().map(|file| {
            let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
            Choice::of(Key::MarkerFile, file)
        }),
    ];
    let all = texts.chain(others.into_iter().flatten());
    all.chain(args.set.iter().cloned()).collect()
}

/// Executes the command. Returns only if it cannot be started.
fn exec_command(command: &[OsString], plan: &Plan) -> ExitCode {
    let Some((program, arguments)) = command.split_first() else {
        return ExitCode::from(exit::RUN_FAILED);
    };
    let mut command = Command::new(program);
    command.args(arguments);
    plan.environment.apply_to(&mut command);
    command.env(LAUNCHED, std::process::id().to_string());
    inherited::restore_in(&mut command);
    let error = command.exec();
    output::note(cannot_start(program, &error));
    ExitCode::from(match error.kind() {
        io::ErrorKind::NotFound => exit::NOT_FOUND,
        io::ErrorKind::InvalidInput => exit::RUN_FAILED,
        _ => exit::NOT_EXECUTABLE,
    })
}

/// `cannot start train: no such command in PATH`
pub fn cannot_start(program: &OsStr, error: &io::Error) -> String {
    let program = Path::new(program);
    let why = why_not_started(program, error);
    format!("cannot start {}: {why}", program.display())
}

/// The system's reason, or a more precise one from the file.
fn why_not_started(program: &Path, error: &io::Error) -> String {
    let is_bare = program.components().count() == 1 && !program.is_absolute();
    let file = program.metadata().ok().filter(|_| !is_bare);
    match (error.kind(), file) {
        (io::ErrorKind::NotFound, _) if is_bare => {
            format!("no such command in PATH{}", hint_for_missing(program))
        }
        (io::ErrorKind::NotFound, Some(_)) => {
            "its interpreter (#! line or loader) was not found".to_owned()
        }
        (io::ErrorKind::PermissionDenied, Some(file)) if file.is_dir() => {
            "it is a directory".to_owned()
        }
        (io::ErrorKind::PermissionDenied, Some(file)) if file.mode() & 0o111 == 0 => {
            format!(
                "it is not executable (chmod +x {})",
                quote(&program.to_string_lossy())
            )
        }
        _ => reason(error),
    }
}

/// A unit is what the shell left of `--limit 8 GB`.
fn hint_for_missing(program: &Path) -> String {
    let name = program.to_string_lossy();
    let is_unit = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && parse::size_bytes(format!("1{name}").as_bytes()).is_some();
    match program.extension() {
        _ if is_unit => format!("; write a size as one word, such as 8{name}"),
        _ if !program.is_file() => String::new(),
        Some(end) if end == "py" => {
            format!("; python3 {} starts the file in this folder", quote(&name))
        }
        Some(_) | None => format!("; ./{} starts the file in this folder", quote(&name)),
    }
}

/// Prints only the variables that change. The rest of the environment may contain secrets.
fn print(plan: &Plan, json: bool) -> anyhow::Result<()> {
    let Environment { set, unset } = &plan.environment;
    let set = set.iter();
    let set = set.map(|(name, value)| (*name, value.to_string_lossy().into_owned()));
    if json {
        let set: BTreeMap<_, _> = set.collect();
        return output::print_json(&json!({"set": set, "unset": unset, "notes": plan.notes}));
    }
    let set = set.map(|(name, value)| format!("{name}={}\n", quote(&value)));
    let unset = unset.iter().map(|name| format!("unset {name}\n"));
    output::print(&set.chain(unset).collect::<String>())
}

/// Quotes a value for a shell.
pub fn quote(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,%+@".contains(c);
    if !value.is_empty() && value.chars().all(is_plain) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\'', r"'\''"))
}

/// Groups of settings in the help text: the heading, and whether the usual settings are meant.
const USUAL: [(&str, bool); 1] = [(
    "Usual settings, each an environment variable (--help-all shows all of them)",
    true,
)];
const ALL: [(&str, bool); 2] = [
    ("Usual settings, each an environment variable", true),
    ("Expert settings", false),
];
const EXAMPLES: &str = "\
Examples:
  flarena run -- python3 train.py
  flarena run --allocator jemalloc --profile -- ./startup/start.sh
  flarena run --marker-file rss-%p.jsonl --limit 8G -- python3 train.py
  flarena run --dry-run --allocator jemalloc
";

/// The help of `--help-all`.
fn long_help(mut cli: clap::Command) -> String {
    cli.build();
    let run = cli.find_subcommand_mut("run");
    let run = run.map(|run| run.clone().after_long_help(help(&ALL)));
    run.map_or_else(String::new, |mut run| run.render_long_help().to_string())
}

/// The end of the help text.
fn help(groups: &[(&str, bool)]) -> String {
    let mut help = EXAMPLES.to_owned();
    for (heading, is_usual) in groups {
        help += &format!("\n{heading}:\n");
        for row in TABLE.iter().filter(|row| row.is_usual == *is_usual) {
            let Setting {
                name, default, doc, ..
            } = row;
            help += &format!("  {name}  [default: {default}]\n      {doc}\n");
        }
    }
    help + "\nExit status: that of the command; 2 the command line is wrong; 125 flarena failed before the command \
           started; 126 the command cannot be executed; 127 it was not found"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_help_lists_every_setting_once_and_the_short_one_the_usual_settings() {
        let entry = |row: &Setting| format!("  {}  [default: {}]\n", row.name, row.default);
        let (all, usual) = (help(&ALL), help(&USUAL));
        for row in TABLE {
            assert_eq!(all.matches(&entry(row)).count(), 1, "{}", row.name);
            assert_eq!(usual.contains(&entry(row)), row.is_usual, "{}", row.name);
        }
    }

    #[test]
    fn the_help_has_the_exit_statuses_of_run_alone() {
        let help = help(&USUAL);
        let (_, statuses) = help.split_once("Exit status: ").unwrap();
        assert!(
            statuses.starts_with("that of the command; 2 "),
            "{statuses}"
        );
        for of_another in ["doctor", "report", "compare"] {
            assert!(!statuses.contains(of_another), "{statuses}");
        }
    }

    #[test]
    fn a_shell_reads_a_quoted_value_unchanged() {
        for value in ["plain", "", "a b", "it's", "$HOME", "a\nb", "%p.jsonl"] {
            let script = format!("printf %s {}", quote(value));
            let output = Command::new("sh").arg("-c").arg(script).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), value);
        }
    }
}
