//! `flarena compare`: memory and time of a command plain, with other allocators, and on flarena.
//!
//! `variants`, `tree` and `execution` touch the system. All other modules are pure.

mod execution;
mod figure;
mod files;
mod load;
mod model;
mod series;
mod text;
mod tree;
mod variants;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{value_parser, ValueHint};
use flarena_shared::python_line;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::process::{getpid, set_child_subreaper};

use crate::library::program::start_error;
use crate::run::cannot_start;
use crate::{exit, output, units};
use execution::{execute, End, Interrupts};
use model::{log_path, order_of_turn, Comparison, Failure, Outcome};
use variants::{Other, Variant};

/// Of the output of a run that failed.
const SHOWN_LINES: usize = 5;
const MAX_SHOWN_BYTES: usize = 2000;

/// Measure a command without flarena, with other allocators, and on flarena
///
/// Runs the command plain, with the system's libjemalloc if it is installed (with the options that
/// NVFlare recommends), and on flarena in both modes. The runs of the variants alternate. Shows the
/// memory (PSS) of all its processes at the peak, on average and while it is idle (the median after
/// a second with less than 5 % of a CPU), CPU and elapsed time, and which differences are beyond
/// noise. A run beside other programs that use more than 20 % of the CPUs is repeated once. A peak
/// that is shorter than the pause between two samples, usually at most a quarter of a second, can
/// be missed.
///
/// The command reads nothing from stdin, and its output is kept in logs. It should do the same work
/// in each run.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  flarena compare -- python3 train.py
  flarena compare --runs 5 --with libtcmalloc,mimalloc -- python3 train.py
  flarena compare --html compare.html -- python3 train.py

Exit status: 0 all runs succeeded; 1 the command failed in a variant; 3 flarena or an allocator \
cannot be used, or a file cannot be written; 128 plus the signal's number after an interrupt: the \
finished runs are shown")]
pub struct Args {
    /// Runs of each variant
    #[arg(long, value_name = "N", default_value = "3", value_parser = value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Also measure these allocators of the system
    #[arg(long, value_name = "NAME,...", value_enum, value_delimiter = ',')]
    with: Vec<Other>,
    /// Directory for memory.svg and for the output of each run
    #[arg(long, value_name = "DIR", default_value = "flarena-compare")]
    dir: PathBuf,
    /// Print JSON, with all samples
    #[arg(long)]
    json: bool,
    /// Print a table in Markdown, for a pull request
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Write table and chart as one self-contained HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND", required = true, value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (program, path) = (&args.command[0], std::env::var_os("PATH"));
    if let Some(error) = start_error(program, path.as_deref()) {
        anyhow::bail!(cannot_start(program, &error));
    }
    let (variants, note) = variants::all(&args.command, &args.with)?;
    note.iter().for_each(output::note);
    let interrupts = Interrupts::register()?;
    // Orphans of the command become children of this process.
    set_child_subreaper(Some(getpid())).context("cannot adopt the command's orphans")?;
    let dir_is_new = !args.dir.exists();
    let cannot_make = || format!("cannot make the directory {}", args.dir.display());
    std::fs::create_dir_all(&args.dir).with_context(cannot_make)?;
    let mut comparison = Comparison {
        command: name_of(&args.command),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        runs: args.runs as usize,
        outcomes: variants.iter().map(Outcome::of).collect(),
    };
    if let Err(error) = measure(&args, &variants, &interrupts, &mut comparison) {
        if dir_is_new {
            let _ = std::fs::remove_dir(&args.dir); // it stays if it has a log
        }
        return Err(error);
    }
    show(&args, &comparison)?;
    Ok(match interrupts.signal() {
        Some(signal) => ExitCode::from(128 + signal),
        None if comparison.has_failed() => ExitCode::from(exit::PROBLEM),
        None => ExitCode::SUCCESS,
    })
}

/// The script or module that Python runs, else the program. Arguments can contain tokens.
fn name_of(command: &[OsString]) -> String {
    let file_name = |path: &Path| path.file_name().unwrap_or(path.as_os_str()).to_owned();
    let program = file_name(Path::new(&command[0]))
        .to_string_lossy()
        .into_owned();
    let is_file = |path: &[u8]| Path::new(std::ffi::OsStr::from_bytes(path)).is_file();
    let words = command.iter().map(|word| word.as_bytes());
    let script = python_line::is_interpreter(&program)
        .then(|| python_line::read(words).program(is_file))
        .flatten();
    output::plain(&script.unwrap_or(program))
}

/// Fills in the runs. A variant that fails is not started again; if plain fails, nothing is. An error only if the first
/// run cannot be started.
fn measure(
    args: &Args,
    variants: &[Variant],
    interrupts: &Interrupts,
    comparison: &mut Comparison,
) -> anyhow::Result<()> {
    let bar = progress(args.runs as usize * variants.len());
    for turn in 0..comparison.runs {
        for place in order_of_turn(turn, variants.len()) {
            if interrupts.signal().is_some() || comparison.plain().failure.is_some() {
                bar.finish_and_clear();
                return Ok(());
            }
            if comparison.outcomes[place].failure.is_none() {
                let is_first = comparison.is_empty() && !comparison.has_failed();
                let (variant, outcome) = (&variants[place], &mut comparison.outcomes[place]);
                match measure_once(args, variant, turn + 1, interrupts, outcome, &bar) {
                    Err(error) if is_first => return Err(error),
                    Err(error) => {
                        say(&bar, &variants[place], turn + 1, &format!("{error:#}"));
                        let (status, log) = ("not started".to_owned(), None);
                        outcome.failure = Some(Failure { status, log });
                    }
                    Ok(()) => (),
                }
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(())
}

fn measure_once(
    args: &Args,
    variant: &Variant,
    run: usize,
    interrupts: &Interrupts,
    outcome: &mut Outcome,
    bar: &ProgressBar,
) -> anyhow::Result<()> {
    let log = log_path(&args.dir, &variant.name, run);
    let show = |seconds: f64, bytes: f64| {
        let size = units::bytes(bytes as u64);
        bar.set_message(format!("{}, {seconds:.0} s, {size}", variant.name));
    };
    let say = |text: &str| say(bar, variant, run, text);
    let once = || execute(&args.command, &variant.environment, &log, interrupts, &show);
    let mut execution = once()?;
    if matches!(&execution.end, End::Measured(run) if run.was_disturbed()) {
        say("other programs used the CPUs; it runs once more");
        execution = once()?;
    }
    let processes = |count: usize| units::plural(count as u64, "process");
    if execution.left_over > 0 {
        let left_over = processes(execution.left_over);
        say(&format!("ended {left_over} that outlived the command"));
    }
    if execution.denied > 0 {
        let denied = processes(execution.denied);
        say(&format!(
            "the memory of {denied} cannot be read and is missing"
        ));
    }
    match execution.end {
        End::Measured(measured) => {
            if bar.is_hidden() {
                let peak = units::bytes(measured.series.peak() as u64);
                say(&format!("{:.1} s, peak {peak}", measured.wall_s));
            }
            outcome.runs.push(measured);
        }
        End::Failed(status) => {
            let end = end_of(&log);
            let colon = if end.is_empty() { "" } else { ":" };
            say(&format!(
                "the command failed, {status}; its output is in {}{colon}{end}",
                log.display()
            ));
            let log = Some(log);
            outcome.failure = Some(Failure { status, log });
        }
        End::Interrupted => say("interrupted; this run is not counted"),
    }
    Ok(())
}

fn say(bar: &ProgressBar, variant: &Variant, run: usize, text: &str) {
    bar.suspend(|| output::note(format_args!("{} run {run}: {text}", variant.name)));
}

/// The last lines of a log, each behind a line break.
fn end_of(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text[text.len().saturating_sub(MAX_SHOWN_BYTES)..]);
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let lines: Vec<&str> = lines.collect();
    let shown = lines[lines.len().saturating_sub(SHOWN_LINES)..].iter();
    shown
        .map(|line| format!("\n{}", output::plain(line.trim_end())))
        .collect()
}

/// Drawn on a terminal only.
fn progress(runs: usize) -> ProgressBar {
    let terminal = ProgressDrawTarget::stderr_with_hz(10);
    let bar = ProgressBar::with_draw_target(Some(runs as u64), terminal);
    let style = ProgressStyle::with_template("{bar:20} {pos} of {len} runs  {msg}");
    bar.set_style(style.unwrap_or(ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

fn show(args: &Args, comparison: &Comparison) -> anyhow::Result<()> {
    if args.json {
        output::print_json(&files::json(comparison))?;
    }
    if comparison.is_empty() {
        output::note("no run succeeded, so there is nothing to compare");
        return Ok(());
    }
    let summary = text::summary(comparison);
    if args.markdown {
        output::print(&text::markdown(&summary))?;
    } else if !args.json {
        let width = output::terminal_width().unwrap_or(80);
        let picture = format!("Chart: {}\n", args.dir.join("memory.svg").display());
        output::print(&(summary.text(Some(width)) + &picture))?;
    }
    let picture = args.dir.join("memory.svg");
    output::replace(&picture, &summary.chart.picture(&comparison.command))?;
    if let Some(page) = &args.html {
        output::replace(page, &summary.page())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_command_has_no_arguments() {
        let name = |words: &[&str]| name_of(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(name(&["/bin/sh", "-c", "secret"]), "sh");
        assert_eq!(name(&["python3", "-m", "json.tool", "secret"]), "json.tool");
        assert_eq!(name(&["python3", "-c", "secret"]), "python3");
    }
}
