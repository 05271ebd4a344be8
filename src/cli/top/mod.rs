//! `flarena top`: a live view of the processes on flarena that this user may see.

mod columns;
mod detail;
mod live;
mod row;
mod sort;
mod state;
mod table;
mod view;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use crate::stats::seconds;
use crate::{exit, output};
use row::ChannelFilter;
use sort::{Order, SortKey};
use state::State;
use table::{HOW_TO_START, NOTHING_RUNS};

/// Watch all processes that run with flarena on this host or in this container
#[derive(clap::Args)]
#[command(
    after_help = "Keys: arrows select a process, Enter shows its details, t makes it return \
free memory, s or < > choose the column to sort by, r reverses the order, / filters, a also shows processes \
without a control channel, ? shows help, q quits

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
    #[arg(long, value_name = "COLUMN", value_enum, default_value = "rss")]
    sort: SortKey,
    /// Show only rows that contain this text
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
    /// Also show processes without a control channel: shells, small helpers, large processes that
    /// only sleep
    #[arg(long)]
    all: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let channel_filter = match args.all {
        true => ChannelFilter::All,
        false => ChannelFilter::WithChannel,
    };
    let mut state = State::new(Order::by(args.sort), args.filter, channel_filter);
    if args.json || args.once {
        state.take(row::collect(channel_filter));
        if args.json {
            output::print_json(&state.visible())?;
        } else {
            let room = output::terminal_width().map(usize::from);
            output::print(&once(&mut state, room))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        output::note("top needs a terminal; use --once or --json to print");
        return Ok(ExitCode::from(exit::UNREADABLE));
    }
    live::run(state, args.interval)?;
    Ok(ExitCode::SUCCESS)
}

/// The table, and a last line about hidden processes, or about what to do without any.
fn once(state: &mut State, room: Option<usize>) -> String {
    state.page = usize::MAX;
    let rows = state.visible();
    let table = table::table(&rows, room, state.order);
    let hidden = state.hidden().text("--all");
    match (rows.is_empty(), hidden.as_str()) {
        (true, "") => format!("{table}{NOTHING_RUNS} {HOW_TO_START}\n"),
        (_, "") => table,
        (_, hidden) => format!("{table}hidden: {hidden}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::row::{NoChannel, Row, Sample};
    use super::*;

    #[test]
    fn the_table_ends_with_the_hidden_processes() {
        let mut state = State::new(
            Order::by(SortKey::Rss),
            String::new(),
            ChannelFilter::WithChannel,
        );
        let row = |pid| Row {
            pid,
            rss_bytes: Some(1),
            ..Row::default()
        };
        let rows: Vec<Row> = (1..=30).map(row).collect();
        let mut table = |small| {
            let no_channel = NoChannel { small, others: 0 };
            state.take(Sample::new(rows.clone(), no_channel, None));
            once(&mut state, Some(40))
        };
        assert!(table(2).ends_with("\nhidden: 2 small (--all)\n"));
        let whole = table(0);
        assert_eq!(whole.lines().count(), 31, "{whole}");
    }
}
