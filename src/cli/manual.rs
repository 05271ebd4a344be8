//! Shell completions and manual pages, generated from the definition of the command line.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::output;

/// Print the completion script for a shell
#[derive(clap::Args)]
#[command(after_help = "Examples:
  flarena completions bash > /etc/bash_completion.d/flarena
  flarena completions zsh > /usr/share/zsh/site-functions/_flarena")]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub fn completions(args: &CompletionsArgs, mut command: Command) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "flarena", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// Print the manual page, or write the pages of all subcommands
#[derive(clap::Args)]
#[command(after_help = "Examples:
  flarena man | man -l -
  flarena man --dir /usr/local/share/man/man1")]
pub struct ManArgs {
    /// Write flarena.1, flarena-run.1 and so on into this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub fn man(args: &ManArgs, command: Command) -> anyhow::Result<ExitCode> {
    let command = command.disable_help_subcommand(true);
    match &args.dir {
        Some(dir) => clap_mangen::generate_to(command, dir)
            .with_context(|| format!("cannot write to {}", dir.display()))?,
        None => {
            let mut page = Vec::new();
            Man::new(command).render(&mut page)?;
            output::print(&String::from_utf8_lossy(&page))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use crate::Cli;
    use clap::CommandFactory;
    use flarena_shared::settings::TABLE;

    #[test]
    fn the_definition_of_the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_subcommand_has_a_manual_page() {
        let scratch = Scratch::new();
        let args = ManArgs {
            dir: Some(scratch.path().to_owned()),
        };
        man(&args, Cli::command()).unwrap();
        for name in ["run", "doctor", "report", "trim", "stats", "top", "who"] {
            let page = scratch.path().join(format!("flarena-{name}.1"));
            let page = std::fs::read_to_string(page).unwrap();
            assert!(page.contains(&format!("flarena\\-{name}")), "{page}");
        }
    }

    #[test]
    fn the_manual_page_of_run_lists_every_setting() {
        let command = Cli::command();
        let run = command.find_subcommand("run").unwrap();
        let mut page = Vec::new();
        Man::new(run.clone()).render(&mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        let text = page
            .replace("\\-", "-")
            .replace("\\*(Aq", "'")
            .replace("\\(aq", "'");
        for row in TABLE {
            let entry = format!("{}  [default: {}]", row.name, row.default);
            assert!(text.contains(&entry), "no {entry} in {text}");
            assert!(text.contains(row.doc), "no {} in {text}", row.doc);
        }
    }

    #[test]
    fn completions_contain_the_subcommands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "flarena", &mut script);
            assert!(
                String::from_utf8(script).unwrap().contains("doctor"),
                "{shell}"
            );
        }
    }
}
