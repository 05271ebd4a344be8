//! `flarena top`: a live view of the processes on flarena that this user may see.

mod detail;
mod live;
mod row;
mod state;
mod table;
mod view;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::output;
use crate::stats::seconds;
use state::State;
use table::{Order, COLUMNS, NOTHING_RUNS, RSS};

/// Watch all processes that run with flarena on this host or in this container
#[derive(clap::Args)]
#[command(
    after_help = "Keys: arrows select a process, Enter shows its details, t makes it return \
free memory, s or < > choose the column to sort by, r reverses the order, / filters and Esc clears the filter, a also shows processes \
without a control channel, Space refreshes, q quits

Columns: PROC is CP or SP for NVFlare's client and server, CJ or SJ for their jobs, TR for a trainer; RSS is the memory \
in RAM, GROWTH/MIN its change per minute over the last two minutes, LIVE is allocated by the program and not freed, \
CACHED are pages of freed large blocks, LIMIT is that of the control group. Empty columns are left out.

Examples:
  flarena top
  flarena top --once --sort live
  flarena top --json --filter site-1

Exit status: 0 success; 3 no terminal to draw on"
)]
pub struct Args {
    /// Print one table and exit
    #[arg(long)]
    once: bool,
    /// Print one JSON array and exit
    #[arg(long)]
    json: bool,
    /// Seconds between updates
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    interval: Duration,
    /// Column to sort by
    #[arg(long, value_name = "COLUMN", default_value = "rss", value_parser = column_names())]
    sort: usize,
    /// Show only rows that contain this text
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
    /// Also show processes without a control channel: shells, small helpers, large processes that
    /// only sleep
    #[arg(long)]
    all: bool,
}

/// The index of the column with this name.
fn column_names() -> impl TypedValueParser<Value = usize> {
    let mut names = COLUMNS
        .each_ref()
        .map(|column| PossibleValue::new(column.name));
    names[RSS] = names[RSS].clone().aliases(["memory", "mem"]);
    let index = |name: String| COLUMNS.iter().position(|column| column.name == name);
    PossibleValuesParser::new(names).map(move |name| index(name).unwrap_or(RSS))
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut state = State {
        order: Order::by(args.sort),
        filter: args.filter,
        shows_all: args.all,
        ..State::default()
    };
    if args.json || args.once {
        let sample = row::collect(args.all, None);
        let hidden = sample.hidden;
        state.take(sample, Instant::now());
        if args.json {
            output::print_json(&state.visible())?;
        } else {
            output::print(&once(&state, hidden, output::terminal_width()))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let is_terminal = io::stdout().is_terminal() && io::stdin().is_terminal();
    ensure!(
        is_terminal,
        "top needs a terminal; use --once or --json to print"
    );
    live::run(state, args.interval)?;
    Ok(ExitCode::SUCCESS)
}

/// The table, and a last line about hidden processes, or about what to do without any.
fn once(state: &State, hidden: usize, room: Option<usize>) -> String {
    let rows = state.visible();
    let table = table::table(&rows, room, state.order);
    match (rows.is_empty() && state.filter.is_empty(), hidden) {
        (true, 0) => format!("{table}{NOTHING_RUNS}\n"),
        (_, 0) => table,
        (_, hidden) => format!("{table}hidden: {hidden} without a control channel (--all)\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::row::{Row, Sample};
    use super::*;
    use crate::proc::Process;

    #[test]
    fn the_table_ends_with_the_hidden_processes() {
        let row = |pid| Row {
            process: Process {
                pid,
                start_ticks: 0,
            },
            rss_bytes: Some(1),
            ..Row::default()
        };
        let mut state = State::default();
        let rows = (1..=30).map(row).collect();
        state.take(
            Sample {
                rows,
                ..Sample::default()
            },
            Instant::now(),
        );
        let table = |hidden| once(&state, hidden, Some(40));
        assert!(table(2).ends_with("\nhidden: 2 without a control channel (--all)\n"));
        let whole = table(0);
        assert_eq!(whole.lines().count(), 31, "{whole}");
    }

    #[test]
    fn a_column_is_chosen_by_its_name_or_an_alias() {
        let command = clap::Command::new("top");
        let parse = |name: &str| column_names().parse_ref(&command, None, name.as_ref()).ok();
        assert_eq!(["rss", "memory", "mem"].map(parse), [Some(RSS); 3]);
        assert_eq!((parse("pid"), parse("history")), (Some(0), None));
    }
}
