//! Manual pages, generated from the definition of the command line and the settings table.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Command;
use clap_mangen::roff::{bold, roman, Roff};
use clap_mangen::Man;
use flarena_shared::settings::TABLE;

use crate::output;

/// Print the manual page, or write the pages of all subcommands
#[derive(clap::Args)]
#[command(after_help = "Examples:
  flarena man | man -l -
  flarena man --dir /usr/local/share/man/man1

Exit status: 0 success; 3 a page cannot be written")]
pub struct Args {
    /// Write flarena.1, flarena-run.1 and so on into this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub fn run(args: &Args, command: Command) -> anyhow::Result<ExitCode> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let Some(dir) = &args.dir else {
        output::print(&page(&command)?)?;
        return Ok(ExitCode::SUCCESS);
    };
    for command in [&command].into_iter().chain(command.get_subcommands()) {
        let file = dir.join(format!("{}.1", name(command)));
        output::replace(&file, &page(command)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// `flarena-run`
fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or(command.get_name())
}

fn page(command: &Command) -> anyhow::Result<String> {
    let version = format!("flarena {}", flarena_shared::VERSION);
    let man = Man::new(command.clone()).source(version).manual("flarena");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let mut roff = Roff::new();
    let help = command.get_after_long_help().or(command.get_after_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let paragraphs = help.split("\n\n");
    paragraphs
        .filter(|text| !text.starts_with("Usual settings"))
        .for_each(|paragraph| section(&mut roff, paragraph));
    environment(&mut roff, name(command));
    let others = "flarena(1), ld.so(8), mallopt(3), jemalloc(3), cgroups(7)";
    roff.control("SH", ["SEE ALSO"]).text([roman(others)]);
    roff.to_writer(&mut page)?;
    Ok(String::from_utf8(page)?)
}

/// A paragraph of the help text: `Heading: text`, or a heading above lines that troff must not fill.
fn section(roff: &mut Roff, paragraph: &str) {
    let (heading, body) = paragraph.split_once(':').unwrap_or(("Notes", paragraph));
    roff.control("SH", [heading.to_uppercase().as_str()]);
    if body.starts_with('\n') {
        roff.control("nf", []);
    }
    for line in body.strip_prefix([' ', '\n']).unwrap_or(body).lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
}

fn environment(roff: &mut Roff, name: &str) {
    roff.control("SH", ["ENVIRONMENT"]);
    if name != "flarena-run" {
        let text =
            "The settings of a process are environment variables, which flarena-run(1) lists.";
        roff.text([roman(text)]);
        return;
    }
    let settings = TABLE
        .iter()
        .map(|row| (format!("{}  [default: {}]", row.name, row.default), row.doc));
    for (name, text) in settings.chain([("FLARENA_LIB".to_owned(), LIBRARY)]) {
        roff.control("TP", []);
        roff.text([bold(name)]);
        roff.text([roman(text)]);
    }
}

const LIBRARY: &str = "the path of libflarena.so, instead of a search beside the command, in its lib folder or Python \
    environment, and in /usr/local/lib, /usr/lib and /opt/flarena/lib";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use crate::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_definition_of_the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_subcommand_has_a_manual_page_with_the_usual_sections() {
        let scratch = Scratch::new();
        let args = Args {
            dir: Some(scratch.path().to_owned()),
        };
        run(&args, Cli::command()).unwrap();
        let mut names: Vec<String> = vec!["flarena".to_owned()];
        let command = Cli::command();
        let subcommands = command.get_subcommands();
        names.extend(subcommands.map(|one| format!("flarena-{}", one.get_name())));
        assert!(names.len() > 9);
        for name in names {
            let page = scratch.path().join(format!("{name}.1"));
            let page = std::fs::read_to_string(page).unwrap();
            assert!(page.contains(&name.replace('-', "\\-")), "{page}");
            for heading in ["EXAMPLES", "EXIT STATUS", "ENVIRONMENT", "SEE ALSO"] {
                let heading = [format!(".SH {heading}\n"), format!(".SH \"{heading}\"\n")];
                let count: usize = heading.iter().map(|line| page.matches(line).count()).sum();
                assert_eq!(count, 1, "{name} {heading:?}");
            }
        }
    }

    #[test]
    fn the_manual_page_of_run_lists_every_setting_once() {
        let mut command = Cli::command();
        command.build();
        let text = page(command.find_subcommand("run").unwrap()).unwrap();
        let text = text
            .replace("\\-", "-")
            .replace("\\*(Aq", "'")
            .replace("\\(aq", "'");
        for row in TABLE {
            let entry = format!("{}  [default: {}]", row.name, row.default);
            assert_eq!(text.matches(&entry).count(), 1, "{entry} in {text}");
            assert!(text.contains(row.doc), "no {} in {text}", row.doc);
        }
    }
}
