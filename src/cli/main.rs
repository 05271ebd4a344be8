//! The command `flarena`. Each subcommand has a folder or a file.

#![cfg_attr(fuzzing, no_main)]

mod compare;
mod completions;
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

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};

use library::program::start_error;

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
    completions::answer(Cli::command);
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
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => manual::run(&args, Cli::command()),
    };
    result.unwrap_or_else(|error| {
        output::note(output::chain(&error));
        ExitCode::from(failure)
    })
}

fn help() -> String {
    let examples = "Examples:
  flarena run -- python3 train.py       start a job on flarena
  flarena compare -- python3 train.py   what flarena changes for it
  flarena doctor                        check this machine
  flarena top                           watch all processes on flarena
  flarena run --marker-file rss.jsonl -- python3 train.py
  flarena report rss.jsonl              leak, cache or allocator?

Sizes: 1 MB is 1024 * 1024 bytes (1 MiB), and 1 GB is 1024 MB; also in options and settings";
    format!("{examples}\n\n{}", exit::HELP)
}

/// Prints clap's error, wrapped at the terminal's width, and exits. Adds suggestions that clap does not have: for short
/// names, and for a pid that an option took as its value.
fn refuse(mut error: clap::Error) -> ! {
    if error.kind() == ErrorKind::MissingRequiredArgument {
        let words: Vec<String> = std::env::args().skip(1).collect();
        if let Some(tip) = swallowed_pid(&words) {
            let tips = ContextValue::StyledStrs(vec![tip.into()]);
            error.insert(ContextKind::Suggested, tips);
        }
    }
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else {
        exit_with(&error)
    };
    let known = Cli::command();
    let names = known.get_subcommands().map(clap::Command::get_name);
    let near = words::one_edit_away(names, typed);
    let is_suggested = error.get(ContextKind::SuggestedSubcommand).is_some();
    let is_like_a_name = (is_suggested || near.is_some()) && !typed.contains(['.', '/']);
    match (line_of_run(Path::new(typed)), near) {
        (Some(line), _) if !is_like_a_name => {
            let text = format!("no subcommand is called '{typed}'; to start it: '{line}'");
            error = Cli::command().error(ErrorKind::InvalidSubcommand, text);
        }
        (_, Some(name)) if !is_suggested => {
            let suggested = ContextValue::Strings(vec![name.to_owned()]);
            error.insert(ContextKind::SuggestedSubcommand, suggested);
        }
        (_, _) => {}
    }
    exit_with(&error)
}

/// How to start a program or a script on flarena. `None` if there is no such file.
fn line_of_run(command: &Path) -> Option<String> {
    let program = start_error(command.as_os_str(), std::env::var_os("PATH").as_deref());
    let name = run::quote(command.to_str()?);
    match program {
        None => Some(format!("flarena run -- {name}")),
        Some(_) if command.extension()? == "py" && command.is_file() => {
            Some(format!("flarena run -- python3 {name}"))
        }
        Some(_) => None,
    }
}

fn exit_with(error: &clap::Error) -> ! {
    if !error.use_stderr() {
        // The help, or the version.
        let printed = error.print().and_then(|()| std::io::stdout().flush());
        let Err(failure) = printed.context("cannot write to stdout") else {
            std::process::exit(0);
        };
        output::note(output::chain(&failure));
        std::process::exit(exit::UNREADABLE.into());
    }
    output::refusal(&error.render().to_string());
    std::process::exit(error.exit_code())
}

/// `stats --watch 4242`: the option took the pid as its value, which it does not need.
fn swallowed_pid(words: &[String]) -> Option<String> {
    let option = |word: &String| matches!(word.as_str(), "--watch" | "--holders");
    let place = words.iter().position(option)?;
    let (command, option) = (words.first()?, &words[place]);
    let pid: u32 = words.get(place + 1)?.parse().ok()?;
    Some(format!(
        "{pid} is read as the value of {option}; if it is a process id, write 'flarena {command} {pid} {option}'"
    ))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pid_that_an_option_took_is_recognized() {
        let tip = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            swallowed_pid(&words)
        };
        let expected = "4242 is read as the value of --watch; if it is a process id, write 'flarena stats 4242 --watch'";
        assert_eq!(tip("stats --watch 4242").as_deref(), Some(expected));
        assert!(
            tip("who --holders 7").is_some_and(|tip| tip.ends_with("'flarena who 7 --holders'"))
        );
        for other in ["stats --watch", "stats --json", "stats --watch x"] {
            assert_eq!(tip(other), None, "{other}");
        }
    }
}
