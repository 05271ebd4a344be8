//! The command `flarena`. Each subcommand has a folder or a file.

#![cfg_attr(fuzzing, no_main)]

mod compare;
mod control;
mod doctor;
mod exit;
#[cfg(test)]
mod fuzz;
mod library;
mod manual;
mod output;
mod proc;
mod report;
mod run;
#[cfg(test)]
mod scratch;
mod stats;
mod top;
mod trim;
mod units;
mod who;
mod words;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser, Subcommand};

/// Keep the memory of long-running processes flat: start, examine and trim them
#[derive(Parser)]
#[command(name = "flarena", version, after_help = exit::HELP)]
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
    Completions(manual::CompletionsArgs),
    Man(manual::ManArgs),
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
        Command::Run(args) => run::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Report(args) => report::run(args),
        Command::Trim(args) => trim::run(args),
        Command::Stats(args) => stats::run(args),
        Command::Top(args) => top::run(args),
        Command::Who(args) => who::run(args),
        Command::Completions(args) => manual::completions(&args, Cli::command()),
        Command::Man(args) => manual::man(&args, Cli::command()),
    };
    result.unwrap_or_else(|error| {
        output::note(output::chain(&error));
        ExitCode::from(failure)
    })
}

/// Prints clap's error and exits. Adds a suggestion for short names, which clap does not suggest.
fn refuse(mut error: clap::Error) -> ! {
    let typed = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(typed))
            if error.get(ContextKind::SuggestedSubcommand).is_none() =>
        {
            typed
        }
        _ => error.exit(),
    };
    let known = Cli::command();
    let names = known.get_subcommands().map(clap::Command::get_name);
    if let Some(name) = words::one_edit_away(names, typed) {
        let suggested = ContextValue::Strings(vec![name.to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, suggested);
    }
    error.exit()
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
