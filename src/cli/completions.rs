//! Shell completions, generated from the definition of the command line.

use std::process::ExitCode;

use clap_complete::Shell;

use crate::output;

/// Print the completion script for a shell
#[derive(clap::Args)]
#[command(after_help = "Examples:
  flarena completions bash > /etc/bash_completion.d/flarena
  flarena completions zsh > /usr/share/zsh/site-functions/_flarena
  flarena completions fish > /etc/fish/completions/flarena.fish

Exit status: 0 success; 3 the script cannot be written")]
pub struct Args {
    /// The shell
    shell: Shell,
}

pub fn run(args: &Args, mut command: clap::Command) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "flarena", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
