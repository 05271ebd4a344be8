//! Manual pages, generated from the definition of the command line and the settings table.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Arg, Command};
use clap_mangen::roff::{bold, roman, Roff};
use clap_mangen::Man;
use flarena_shared::settings::TABLE;

use crate::output;
use crate::report::output::write;

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
        let cannot_write = || format!("cannot write {}", file.display());
        write::replace(&file, page(command)?.as_bytes()).with_context(cannot_write)?;
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
    synopsis(command).to_writer(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let mut roff = Roff::new();
    let help = command.get_after_long_help().or(command.get_after_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    for paragraph in help
        .split("\n\n")
        .filter(|text| !text.starts_with("Usual settings"))
    {
        section(&mut roff, paragraph);
    }
    environment(&mut roff, name(command));
    entries(
        &mut roff,
        "FILES",
        files(command.get_name()).iter().copied(),
    );
    see_also(&mut roff, name(command));
    roff.to_writer(&mut page)?;
    Ok(String::from_utf8(page)?)
}

/// Each option with its value, which clap_mangen leaves out, and then the operands. A no-break space keeps the two on a line.
fn synopsis(command: &Command) -> Roff {
    let mut words = vec![bold(command.get_bin_name().unwrap_or(command.get_name()))];
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let (operands, options): (Vec<&Arg>, Vec<&Arg>) = shown.partition(|arg| arg.is_positional());
    for argument in options.into_iter().chain(operands) {
        let text = argument.to_string().replace(' ', "\u{a0}");
        words.push(roman(
            match argument.is_positional() || argument.is_required_set() {
                true => format!(" {text}"),
                false => format!(" [{text}]"),
            },
        ));
    }
    if command.has_subcommands() {
        words.push(roman(" <COMMAND>"));
    }
    let mut roff = Roff::new();
    // Neither hyphens in the names nor wide gaps.
    roff.control("SH", ["SYNOPSIS"]);
    roff.control("nh", []).control("ad", ["l"]).text(words);
    roff.control("ad", ["b"]).control("hy", []);
    roff
}

/// A paragraph of the help text, `Heading: text` or a heading above indented lines.
fn section(roff: &mut Roff, paragraph: &str) {
    let (heading, body) = paragraph.split_once(':').unwrap_or(("Notes", paragraph));
    roff.control("SH", [heading.to_uppercase().as_str()]);
    match body.strip_prefix('\n') {
        Some(lines) => {
            roff.control("nf", []);
            lines.lines().for_each(|line| {
                roff.text([roman(line)]);
            });
            roff.control("fi", []);
        }
        None => {
            roff.text([roman(body.trim())]);
        }
    }
}

fn entries<'a>(roff: &mut Roff, heading: &str, rows: impl Iterator<Item = (&'a str, &'a str)>) {
    roff.control("SH", [heading]);
    for (name, text) in rows {
        roff.control("TP", []);
        roff.text([bold(name)]);
        roff.text([roman(text)]);
    }
}

fn environment(roff: &mut Roff, name: &str) {
    if !["flarena-run", "flarena-doctor"].contains(&name) {
        roff.control("SH", ["ENVIRONMENT"]);
        let text =
            "The settings of a process are environment variables, which flarena-run(1) lists.";
        roff.text([roman(text)]);
        return;
    }
    let rows: Vec<(String, &str)> = TABLE
        .iter()
        .map(|row| (format!("{}  [default: {}]", row.name, row.default), row.doc))
        .collect();
    let rows = rows.iter().map(|(name, text)| (name.as_str(), *text));
    let library = (
        "FLARENA_LIB",
        "the path of libflarena.so, instead of a search",
    );
    entries(roff, "ENVIRONMENT", rows.chain([library]));
}

const CHANNEL: (&str, &str) = (
    "@flarena/PID/START",
    "the control channel of a process, an abstract Unix socket without a file",
);

fn files(name: &str) -> &'static [(&'static str, &'static str)] {
    match name {
        "run" => &[
            (
                "libflarena.so",
                "the library: beside the command, in its lib folder or Python environment, or in /usr/local/lib, \
                 /usr/lib and /opt/flarena/lib",
            ),
            (
                "hooks/sitecustomize.py",
                "the Python hooks, in the Python package flarena; their folder is put into PYTHONPATH",
            ),
            (
                "~/.cache/flarena/",
                "links to a library whose path LD_PRELOAD cannot contain",
            ),
        ],
        "compare" => &[
            ("flarena-compare/memory.svg", "the chart (--dir names another folder)"),
            ("flarena-compare/VARIANT-RUN.log", "the output of each run"),
        ],
        "doctor" => &[
            ("/proc/PID/", "the maps, status and environment of the process"),
            ("/sys/fs/cgroup/", "its memory limits"),
            (
                "/sys/kernel/mm/transparent_hugepage/",
                "the system's switches for huge pages",
            ),
        ],
        "report" => &[
            ("*.jsonl", "marker files, FLARENA_MARKER_FILE of flarena-run(1)"),
            ("log.txt, log.txt.1, *.gz", "logs of NVFlare with [RSS] lines"),
        ],
        "completions" => &[
            ("/etc/bash_completion.d/flarena", "for bash"),
            ("/usr/share/zsh/site-functions/_flarena", "for zsh"),
            ("/etc/fish/completions/flarena.fish", "for fish"),
        ],
        "man" => &[("/usr/local/share/man/man1/flarena*.1", "the pages")],
        "flarena" => &[
            ("libflarena.so", "the library; flarena-run(1) says where it is searched"),
            CHANNEL,
        ],
        _ => &[CHANNEL],
    }
}

fn see_also(roff: &mut Roff, own: &str) {
    let pages = [
        "flarena",
        "flarena-run",
        "flarena-compare",
        "flarena-doctor",
        "flarena-report",
        "flarena-trim",
        "flarena-stats",
        "flarena-top",
        "flarena-who",
    ];
    let pages = pages.into_iter().filter(|page| *page != own);
    let pages = pages.map(|page| format!("{page}(1)"));
    let others = ["ld.so(8)", "mallopt(3)", "jemalloc(3)", "cgroups(7)"].map(str::to_owned);
    let list: Vec<String> = pages.chain(others).collect();
    roff.control("SH", ["SEE ALSO"]);
    roff.text([roman(list.join(", "))]);
}

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
            for heading in [
                "EXAMPLES",
                "EXIT STATUS",
                "ENVIRONMENT",
                "FILES",
                "SEE ALSO",
            ] {
                let heading = [format!(".SH {heading}\n"), format!(".SH \"{heading}\"\n")];
                let count: usize = heading.iter().map(|line| page.matches(line).count()).sum();
                assert_eq!(count, 1, "{name} {heading:?}");
            }
        }
    }

    #[test]
    fn the_synopsis_has_the_values_of_options_and_the_operands_last() {
        let mut command = Cli::command();
        command.build();
        let text = synopsis(command.find_subcommand("run").unwrap()).render();
        let text = text.replace('\u{a0}', " ").replace("\\-", "-");
        assert!(
            text.contains(" [--limit <SIZE>] [--set <NAME=VALUE>] "),
            "{text}"
        );
        assert!(text.contains(" [--help] [COMMAND]...\n"), "{text}");
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
