//! `flarena top`: every process on flarena that this user may see, live.

mod columns;
mod live;
mod row;
mod sort;
mod state;
mod view;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use crate::stats::seconds;
use crate::{exit, output};
use sort::{Order, SortKey};
use state::State;

/// Watch every process that runs on flarena, on this host or in this container
#[derive(clap::Args)]
#[command(
    after_help = "Keys: arrows select, t trims, s or < > change the sort column, \
r reverses, / filters, a shows processes without a control channel, ? explains, q quits

Examples:
  flarena top
  flarena top --once --sort live
  flarena top --json --filter site-1

Exit status: 0; 3 there is no terminal to draw on"
)]
pub struct Args {
    /// Print one table and end
    #[arg(long)]
    once: bool,
    /// Print one JSON array and end
    #[arg(long)]
    json: bool,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    interval: Duration,
    /// Column to sort by
    #[arg(long, value_name = "COLUMN", value_enum, default_value = "rss")]
    sort: SortKey,
    /// Only rows in which this text stands somewhere
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
    /// Also processes that map the library and have no control channel: shells, small helpers, large ones that only sleep
    #[arg(long)]
    all: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut state = State::new(Order::by(args.sort), args.filter, args.all);
    if args.json || args.once {
        state.take(row::collect(args.all));
        if args.json {
            output::print_json(&state.visible())?;
        } else {
            let room = output::terminal_width().map(usize::from);
            output::print(&once(&mut state, room))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        output::note("top needs a terminal; --once and --json print instead");
        return Ok(ExitCode::from(exit::UNREADABLE));
    }
    live::run(state, args.interval)?;
    Ok(ExitCode::SUCCESS)
}

/// The table, and a last line for what it leaves out.
fn once(state: &mut State, room: Option<usize>) -> String {
    state.page = usize::MAX;
    let cells: Vec<_> = state.visible().iter().map(|row| row.cells()).collect();
    let table = columns::table(&cells, room);
    match state.hidden().words("--all").as_str() {
        "" => table,
        hidden => format!("{table}hidden: {hidden}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::row::{Look, Row, Silent};
    use super::*;

    #[test]
    fn one_table_ends_with_what_it_leaves_out() {
        let mut state = State::new(Order::by(SortKey::Rss), String::new(), false);
        let row = |pid| Row {
            pid,
            rss_bytes: Some(1),
            ..Row::default()
        };
        let rows: Vec<Row> = (1..=30).map(row).collect();
        let mut told = |small| {
            let (rows, others) = (rows.clone(), 0);
            let silent = Silent { small, others };
            state.take(Look { rows, silent });
            once(&mut state, Some(40))
        };
        assert!(told(2).ends_with("\nhidden: 2 small (--all)\n"));
        let whole = told(0);
        assert_eq!(whole.lines().count(), 31, "{whole}");
    }
}
