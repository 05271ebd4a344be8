//! Shell completions. The shell's script asks this command for the candidates, so they know the
//! settings and their values, live processes, and the programs in PATH.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::ExitCode;

use anyhow::Context;
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};
use flarena_shared::settings::{self, setting, Key, Setting, TABLE};

use crate::control;
use crate::output;
use crate::proc::Process;

/// The script sets this variable to the name of the shell, and asks for candidates.
const REQUEST: &str = "_FLARENA_COMPLETE";
const BASH: &str = include_str!("completions.bash");
const FISH: &str = include_str!("completions.fish");
/// Follows clap's own script.
const ZSH: &str = include_str!("completions.zsh");

/// Print the completion script for a shell
///
/// The script asks flarena for the candidates: options and their values, settings, the pids of
/// processes on flarena, and the commands in PATH after `flarena run --`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  flarena completions bash > /etc/bash_completion.d/flarena
  flarena completions zsh > /usr/share/zsh/site-functions/_flarena

Exit status: 0 success; 3 the script cannot be written")]
pub struct Args {
    /// The shell
    shell: Shell,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let whole = match args.shell {
        Shell::Bash => Some(BASH),
        Shell::Fish => Some(FISH),
        _ => None,
    };
    if let Some(script) = whole {
        output::print(script)?;
        return Ok(ExitCode::SUCCESS);
    }
    let shells = Shells::builtins();
    let name = args.shell.to_string();
    let shell = shells.completer(&name).context("no such shell")?;
    let mut script = Vec::new();
    shell.write_registration(REQUEST, "flarena", "flarena", "flarena", &mut script)?;
    if args.shell == Shell::Zsh {
        script.extend(ZSH.as_bytes());
    }
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// Answers the script of a shell, and exits. Returns if this is no such request.
pub fn answer(command: impl Fn() -> clap::Command) {
    let words = doctor_as_run(std::env::args_os().collect());
    let folder = std::env::current_dir().ok();
    let request = CompleteEnv::with_factory(command).var(REQUEST);
    match request.try_complete(words, folder.as_deref()) {
        Ok(true) => std::process::exit(0),
        Ok(false) => {}
        Err(error) => error.exit(),
    }
}

/// `flarena -- flarena doctor -- WORD`: clap takes the word for the first positional argument, the PID. That of
/// `run` is the command.
fn doctor_as_run(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.len() > 4 && words[3] == "doctor" && words[4..words.len() - 1].contains(&"--".into()) {
        words[3] = "run".into();
    }
    words
}

/// Completes `NAME=VALUE` of `--set`.
pub fn settings() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let typed = typed.to_string_lossy();
        let Some((name, value)) = typed.split_once('=') else {
            let names = TABLE.iter().map(|row| (format!("{}=", row.name), row.doc));
            return starting_with(&typed, names);
        };
        let row = TABLE.iter().find(|row| row.name == name);
        let values = row.into_iter().flat_map(values);
        let values = starting_with(value, values.map(|value| (value.to_owned(), "")));
        let whole = |value: CompletionCandidate| value.add_prefix(format!("{name}="));
        values.into_iter().map(whole).collect()
    })
}

/// Completes the value of an option that sets one setting.
pub fn values_of(key: Key) -> ArgValueCompleter {
    ArgValueCompleter::new(move |typed: &OsStr| {
        let values = values(setting(key)).map(|value| (value.to_owned(), ""));
        starting_with(&typed.to_string_lossy(), values)
    })
}

/// The words among the accepted values that a setting accepts as they stand.
fn values(row: &'static Setting) -> impl Iterator<Item = &'static str> {
    let words = row.accepts.split(", ").flat_map(|part| part.split(" or "));
    let words = words.map(|word| word.strip_prefix("or ").unwrap_or(word));
    words.filter(|word| !word.contains(' ') && accepts(row, word))
}

fn accepts(row: &Setting, word: &str) -> bool {
    let mut is_accepted = row.key != Key::MallocConf; // a list of options, not words
    settings::read(
        |key| (key == row.key).then_some(word.as_bytes()),
        |_| is_accepted = false,
    );
    is_accepted
}

/// Completes fixed words, such as the beginnings of a condition.
pub fn words(words: fn() -> Vec<String>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |typed: &OsStr| {
        let words = words().into_iter().map(|word| (word, ""));
        starting_with(&typed.to_string_lossy(), words)
    })
}

/// Completes the pid of a process with a control channel.
pub fn pids_with_channel() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| pids(typed, control::listening()))
}

/// Completes the pid of a process that runs on flarena.
pub fn pids_with_library() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let (listening, others) = control::with_library();
        pids(typed, listening.into_iter().chain(others))
    })
}

fn pids(typed: &OsStr, processes: impl IntoIterator<Item = Process>) -> Vec<CompletionCandidate> {
    let named = processes
        .into_iter()
        .map(|process| (process.pid.to_string(), output::plain(&process.name())));
    starting_with(&typed.to_string_lossy(), named)
}

/// Completes a command in PATH and the files after it. clap does not say which word is the first.
pub fn command() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let mut found = PathCompleter::any().complete(typed);
        if !typed.as_encoded_bytes().contains(&b'/') {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let names = programs(&path).into_iter().map(|name| (name, ""));
            found.extend(starting_with(&typed.to_string_lossy(), names));
        }
        found
    })
}

fn programs(path: &OsString) -> BTreeSet<String> {
    let entries = std::env::split_paths(path).filter_map(|dir| fs::read_dir(dir).ok());
    let files = entries.flatten().flatten();
    let is_program = |entry: &fs::DirEntry| {
        let file = fs::metadata(entry.path());
        file.is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    let names = files.filter(is_program).map(|entry| entry.file_name());
    names.filter_map(|name| name.into_string().ok()).collect()
}

fn starting_with<H: Into<String>>(
    typed: &str,
    words: impl Iterator<Item = (String, H)>,
) -> Vec<CompletionCandidate> {
    let begun = words.filter(|(word, _)| word.starts_with(typed));
    let candidate = |(word, help): (String, H)| {
        let help: String = help.into();
        let help = (!help.is_empty()).then(|| help.into());
        CompletionCandidate::new(word).help(help)
    };
    begun.map(candidate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, ValueEnum};

    fn completed(line: &[&str]) -> Vec<String> {
        let words: Vec<OsString> = line.iter().map(OsString::from).collect();
        let (index, mut command) = (words.len() - 1, crate::Cli::command());
        let found = clap_complete::engine::complete(&mut command, words, index, None).unwrap();
        let text = |one: CompletionCandidate| one.get_value().to_string_lossy().into_owned();
        found.into_iter().map(text).collect()
    }

    #[test]
    fn the_words_of_the_accepted_values_are_completed() {
        let values = |key| values(setting(key)).collect::<Vec<_>>();
        assert_eq!(values(Key::Allocator), ["jemalloc", "glibc"]);
        assert_eq!(values(Key::Huge), ["auto", "off", "2M"]);
        assert_eq!(values(Key::SitesSample), ["off"]);
        for without in [Key::DecayMs, Key::MarkerFile, Key::MallocConf, Key::Name] {
            assert_eq!(values(without), [""; 0], "{without:?}");
        }
    }

    #[test]
    fn settings_are_completed_with_their_values() {
        assert_eq!(
            completed(&["flarena", "run", "--set", "FLARENA_SITES"]),
            ["FLARENA_SITES=", "FLARENA_SITES_SAMPLE="]
        );
        assert_eq!(
            completed(&["flarena", "run", "--set", "FLARENA_GC=a"]),
            ["FLARENA_GC=auto"]
        );
        assert_eq!(
            completed(&["flarena", "run", "--allocator", "j"]),
            ["jemalloc"]
        );
        assert_eq!(
            completed(&["flarena", "report", "--fail-on", "verdict:ret"]),
            ["verdict:retention"]
        );
    }

    #[test]
    fn the_words_after_a_command_are_files() {
        assert!(completed(&["flarena", "run", "--", "env"]).contains(&"env".to_owned()));
        assert_eq!(
            completed(&["flarena", "run", "--", "sh", "main."]),
            ["main.rs"]
        );
        let programs = completed(&["flarena", "run", "--", "/usr/bin/en"]);
        assert!(programs.contains(&"/usr/bin/env".to_owned()));
    }

    #[test]
    fn the_word_after_doctor_and_dashes_is_a_command() {
        let rewritten = |line: &str| doctor_as_run(line.split(' ').map(OsString::from).collect());
        let words = rewritten("flarena -- flarena doctor --json -- en");
        let words: Vec<&str> = words[2..]
            .iter()
            .map(|word| word.to_str().unwrap())
            .collect();
        assert!(completed(&words).contains(&"env".to_owned()));
        assert_eq!(rewritten("flarena -- flarena doctor --")[3], "doctor");
    }

    #[test]
    fn every_shell_has_a_script() {
        let shells = Shells::builtins();
        for shell in Shell::value_variants() {
            assert!(shells.completer(&shell.to_string()).is_some(), "{shell}");
        }
    }
}
