//! The command `flarena`. Each subcommand has a folder or a file.

#![cfg_attr(fuzzing, no_main)]

mod compare;
mod completions;
mod control;
mod doctor;
mod exit;
mod library;
mod manual;
mod output;
mod proc;
mod report;
mod run;
mod stats;
#[cfg(test)]
mod testing;
mod top;
mod trim;
mod units;
mod who;

use std::io::Write;
use std::process::ExitCode;

#[cfg(test)]
use testing::scratch;

use anyhow::Context;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};

/// Keep the memory of long-running processes flat: start, examine and trim them
#[derive(Parser)]
#[command(name = "flarena", version, after_help = help())]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Args),
    Compare(compare::Args),
    Doctor(doctor::Args),
    Report(report::Args),
    Trim(trim::Args),
    Stats(stats::Args),
    Top(top::Args),
    Who(who::Args),
    Completions(completions::Args),
    Man(manual::Args),
}

fn main() -> ExitCode {
    handle_sigpipe_and_panics();
    let command = Cli::try_parse()
        .unwrap_or_else(|error| refuse(error))
        .command;
    // The status of a failed `run` must differ from those of the command.
    let failure = match command {
        Command::Run(_) => exit::RUN_FAILED,
        _ => exit::UNREADABLE,
    };
    let result = match command {
        Command::Run(args) => run::run(args, Cli::command),
        Command::Compare(args) => compare::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Report(args) => report::run(args),
        Command::Trim(args) => trim::run(args),
        Command::Stats(args) => stats::run(args),
        Command::Top(args) => top::run(args),
        Command::Who(args) => who::run(args),
        Command::Completions(args) => completions::run(&args, Cli::command()),
        Command::Man(args) => manual::run(&args, Cli::command()),
    };
    result.unwrap_or_else(|error| {
        output::note(output::chain(&error));
        ExitCode::from(failure)
    })
}

const EXAMPLES: &str = "\
Examples:
  flarena run -- python3 train.py       start a job on flarena
  flarena compare -- python3 train.py   what flarena changes for it
  flarena doctor                        check this machine
  flarena top                           watch all processes on flarena
  flarena run --marker-file rss.jsonl -- python3 train.py
  flarena report rss.jsonl              leak, cache or allocator?";

fn help() -> String {
    let sizes = "Sizes: 1 MB is 1024 * 1024 bytes (1 MiB), and 1 GB is 1024 MB; also in options and settings";
    format!("{EXAMPLES}\n\n{sizes}\n\n{}", exit::HELP)
}

/// Prints the help or clap's error, wrapped at the terminal's width, and exits.
fn refuse(mut error: clap::Error) -> ! {
    if !error.use_stderr() {
        // The help, or the version.
        let printed = error.print().and_then(|()| std::io::stdout().flush());
        let Err(failure) = printed.context("cannot write to stdout") else {
            std::process::exit(0);
        };
        output::note(output::chain(&failure));
        std::process::exit(exit::UNREADABLE.into());
    }
    let is_unlike_all = error.get(ContextKind::SuggestedSubcommand).is_none();
    if error.kind() == ErrorKind::InvalidSubcommand && is_unlike_all {
        let tip = "to start a command: 'flarena run -- COMMAND'".to_owned();
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![tip.into()]),
        );
    }
    output::refusal(&match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            format!("{EXAMPLES}\n\nflarena --help lists all commands.")
        }
        _ => error.render().to_string(),
    });
    std::process::exit(error.exit_code())
}

/// A closed pipe ends the command silently, as it ends `cat`. A panic prints one line.
fn handle_sigpipe_and_panics() {
    // SAFETY: SIG_DFL installs no handler, and the process has no other thread yet.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    std::panic::set_hook(Box::new(|panic| {
        output::note(format_args!("internal error, please report it: {panic}"));
        std::process::exit(exit::INTERNAL.into());
    }));
}
