//! Draws `top`: a heading, the table, and a line of keys; or the help, or one process.

use ratatui::layout::Constraint::{Length, Min};
use ratatui::layout::{Layout, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row as TableRow, Table, Wrap};
use ratatui::Frame;

use super::row::{Row, Sample};
use super::state::{State, View};
use super::table::{self, COLUMNS, HOW_TO_START, NOTHING_RUNS};
use crate::output::plain;
use crate::units::{bytes, or_dash, plural};

/// The most important first: a narrow terminal drops the last ones.
const KEYS: &str = "q quit  ? help  Enter details  t trim  s sort  / filter  a all  r reverse";
const KEYS_OF_HELP: &str = "any other key closes this  arrows scroll";
const KEYS_OF_DETAIL: &str = "any other key closes this  arrows scroll  t trim  ? help";

/// Fits into 80 columns and 24 lines.
const HELP: &str = "\
arrows   select a process; also j k PgUp PgDn Home End
Enter    show its last markers, lines of code and settings
t        trim: make it return its free memory
s > <    sort by the next or the previous column
r        reverse the order
/        filter: show rows that contain a text; Esc clears it
a        also show processes without a control channel
Space    refresh now
q        quit

PROC        CP SP client and server, CJ SJ their jobs, TR trainer
RSS         memory of the process that is in RAM
GROWTH/MIN  change of RSS per minute, over the last two minutes
LIVE        allocated by the program and not freed
CACHED      pages of freed large blocks, kept for reuse
LIMIT       memory limit of its control group
COMMAND     the name from flarena run --name, the script, or the program
Columns that are empty or do not fit are left out.";

pub fn draw(frame: &mut Frame, state: &mut State) {
    let [head, body, foot] = Layout::vertical([Length(1), Min(1), Length(1)]).areas(frame.area());
    state.page = usize::from(body.height.saturating_sub(1)).max(1);
    if let Some(sample) = &state.sample {
        let heading = heading(&state.visible(), sample, head.width);
        frame.render_widget(Line::from(heading).bold(), head);
    }
    frame.render_widget(Line::from(footer(state, foot.width)), foot);
    draw_table(frame, body, state);
    let (title, text) = match state.view {
        View::Table | View::Filter => return,
        View::Help => (" help ".to_owned(), HELP),
        View::Detail(process) => {
            let detail = state
                .sample
                .as_ref()
                .and_then(|sample| sample.detail.as_ref());
            let text = detail.filter(|(of, _)| *of == process);
            let text = text.map_or("asking the process", |(_, text)| text);
            (format!(" {} ", process.pid), text)
        }
    };
    let block = Block::bordered().title(title);
    let text = Text::from_iter(text.lines().map(plain));
    let text = Paragraph::new(text).wrap(Wrap { trim: false });
    let inside = block.inner(body);
    let lines = text.line_count(inside.width);
    let last = lines.saturating_sub(inside.height.into());
    state.scroll = state.scroll.min(last).min(u16::MAX.into());
    frame.render_widget(Clear, body);
    let text = text.scroll((state.scroll as u16, 0)).block(block);
    frame.render_widget(text, body);
}

/// As many of the parts as fit, the first ones.
fn fitting<'a>(parts: impl IntoIterator<Item = &'a str>, room: u16) -> String {
    let mut line = String::new();
    for part in parts {
        let gap = if line.is_empty() { "" } else { "  " };
        if line.chars().count() + gap.len() + part.chars().count() > room.into() {
            break;
        }
        line = line + gap + part;
    }
    line
}

fn heading(rows: &[&Row], sample: &Sample, width: u16) -> String {
    let mut parts = vec![plural(rows.len() as u64, "process")];
    if sample.hidden > 0 {
        parts.push(format!("{} hidden (a)", sample.hidden));
    }
    if let Some(room) = sample.room {
        let percent = room.used_bytes as f64 / room.total_bytes.max(1) as f64 * 100.0;
        let total = bytes(room.total_bytes);
        parts.push(format!("{} {percent:.0} % of {total}", room.of));
    }
    let sum = |size: fn(&Row) -> Option<u64>| bytes(rows.iter().filter_map(|row| size(row)).sum());
    parts.push(format!("rss {}", sum(|row| row.rss_bytes)));
    parts.push(format!("live {}", sum(|row| row.live_bytes)));
    fitting(parts.iter().map(String::as_str), width)
}

fn draw_table(frame: &mut Frame, area: Rect, state: &mut State) {
    let rows: Vec<_> = state.visible().into_iter().map(table::cells).collect();
    let layout = table::layout(&rows, Some(area.width.into()), state.order);
    let cell = |column: usize, text: String| match COLUMNS[column].is_number() {
        true => Cell::from(Line::from(text).right_aligned()),
        false => Cell::from(text),
    };
    let header = layout.iter().map(|&(column, _)| {
        let cell = cell(column, state.order.heading(column));
        match column == state.order.column {
            true => cell.reversed(),
            false => cell.bold(),
        }
    });
    let body = rows.iter().map(|row| {
        let columns = layout.iter().map(|&(column, _)| column);
        TableRow::new(columns.map(|column| cell(column, or_dash(row[column].as_ref()))))
    });
    let widths = layout.iter().map(|(_, width)| Length(*width as u16));
    let widget = Table::new(body, widths)
        .header(TableRow::new(header))
        .row_highlight_style(Style::new().reversed());
    state.table.select(state.selection());
    frame.render_stateful_widget(widget, area, &mut state.table);
    if rows.is_empty() {
        let [_, below] = Layout::vertical([Length(2), Min(0)]).areas(area);
        let text = Paragraph::new(why_empty(state)).wrap(Wrap { trim: true });
        frame.render_widget(text, below);
    }
    state.shown = layout.into_iter().map(|(column, _)| column).collect();
}

fn why_empty(state: &State) -> String {
    if state.sample.is_none() {
        return "collecting processes".to_owned();
    }
    if !state.filter.is_empty() {
        return "No process matches the filter; Esc clears it.".to_owned();
    }
    format!(
        "{NOTHING_RUNS}\n{HOW_TO_START}\nSmall processes have no control channel; press a to see them, too."
    )
}

fn footer(state: &State, width: u16) -> String {
    let filter = match (state.view, state.filter.as_str()) {
        (View::Filter, filter) => return format!("filter: {filter}_"),
        (_, "") => String::new(),
        (_, filter) => format!("filter: {filter}  "),
    };
    if !state.message.is_empty() {
        return filter + &state.message;
    }
    let keys = match state.view {
        View::Help => KEYS_OF_HELP,
        View::Detail(_) => KEYS_OF_DETAIL,
        View::Table | View::Filter => {
            let selected = state.selection().map(|place| state.visible()[place]);
            match selected.and_then(|row| row.note.as_deref()) {
                Some(note) => return filter + note,
                None => KEYS,
            }
        }
    };
    let room = width.saturating_sub(filter.chars().count() as u16);
    filter + &fitting(keys.split("  "), room)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::table::{Order, RSS};
    use super::*;
    use crate::proc::{Process, Room};
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent};
    use ratatui::Terminal;

    const ROOM: Room = Room {
        used_bytes: 3 << 30,
        total_bytes: 8 << 30,
        of: "cgroup",
    };

    const PROCESS: Process = Process {
        pid: 4242,
        start_ticks: 7,
    };

    fn empty() -> State {
        State {
            order: Order::by(RSS),
            ..State::default()
        }
    }

    fn nothing() -> Sample {
        Sample {
            room: Some(ROOM),
            ..Sample::default()
        }
    }

    fn screen(state: &mut State, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, state)).unwrap();
        terminal.backend().to_string()
    }

    fn state() -> State {
        let row = Row {
            process: PROCESS,
            site: Some("site-1".into()),
            stage: Some("before_aggregation".into()),
            rss_bytes: Some(512 << 20),
            ..Row::default()
        };
        let sample = Sample {
            rows: vec![row],
            hidden: 3,
            ..nothing()
        };
        let mut state = empty();
        state.take(sample, Instant::now());
        state
    }

    fn press(state: &mut State, code: KeyCode) {
        state.key(KeyEvent::from(code));
    }

    #[test]
    fn the_screen_shows_the_process_and_the_keys() {
        let screen = screen(&mut state(), 130, 6);
        for words in [
            "1 process ",
            "4242",
            "site-1",
            "before_aggregation",
            "512.0 MB",
            "q quit",
            "3 hidden (a)",
        ] {
            assert!(screen.contains(words), "{words}\n{screen}");
        }
    }

    #[test]
    fn eighty_columns_show_whole_numbers() {
        let screen = screen(&mut state(), 80, 6);
        assert!(
            screen.contains("4242") && screen.contains(" 512.0 MB"),
            "{screen}"
        );
        assert!(
            screen.contains("3 hidden") && screen.contains("STAGE"),
            "{screen}"
        );
    }

    #[test]
    fn a_narrow_heading_drops_the_sums_before_the_hidden_processes() {
        let mut state = state();
        for (room, heading) in [
            (
                80,
                "1 process  3 hidden (a)  cgroup 38 % of 8.00 GB  rss 512.0 MB  live 0 KB",
            ),
            (
                65,
                "1 process  3 hidden (a)  cgroup 38 % of 8.00 GB  rss 512.0 MB",
            ),
            (50, "1 process  3 hidden (a)  cgroup 38 % of 8.00 GB"),
            (30, "1 process  3 hidden (a)"),
            (20, "1 process"),
        ] {
            let screen = screen(&mut state, room, 6);
            let first = screen.lines().next().unwrap();
            assert_eq!(first.trim_matches(['"', ' ']), heading, "{room}");
        }
    }

    #[test]
    fn the_sorted_column_has_an_arrow_and_s_moves_it_over_the_shown_columns() {
        let mut state = state();
        assert!(screen(&mut state, 80, 6).contains("RSS▼"));
        press(&mut state, KeyCode::Char('r'));
        assert!(screen(&mut state, 80, 6).contains("RSS▲"));
        press(&mut state, KeyCode::Char('s'));
        assert!(screen(&mut state, 80, 6).contains("COMMAND▲"));
    }

    #[test]
    fn the_help_fits_into_80_columns_and_24_lines() {
        let mut state = state();
        state.view = View::Help;
        let screen = screen(&mut state, 80, 24);
        for line in HELP.lines() {
            assert!(screen.contains(line), "{line}\n{screen}");
        }
    }

    #[test]
    fn a_text_that_does_not_fit_is_scrolled_to_its_end() {
        let mut state = state();
        state.view = View::Help;
        let first = screen(&mut state, 40, 10);
        assert!(
            first.contains("select a process") && first.contains("any other key closes"),
            "{first}"
        );
        press(&mut state, KeyCode::End);
        let last = screen(&mut state, 40, 10);
        assert!(last.contains("left out."), "{last}");
        assert!(state.scroll < 100);
    }

    #[test]
    fn a_process_is_shown_with_all_that_it_tells() {
        let mut state = state();
        press(&mut state, KeyCode::Enter);
        assert!(screen(&mut state, 80, 24).contains("asking the process"));
        let text = format!("Stages\n{}\u{1b}", "x".repeat(100));
        let other = Process { pid: 1, ..PROCESS };
        state.sample.as_mut().unwrap().detail = Some((other, text.clone()));
        assert!(screen(&mut state, 80, 24).contains("asking the process"));
        state.sample.as_mut().unwrap().detail = Some((PROCESS, text));
        let screen = screen(&mut state, 80, 24);
        assert!(
            screen.contains(" 4242 ") && screen.contains("Stages"),
            "{screen}"
        );
        let rest = format!("│{}?", "x".repeat(22));
        assert!(screen.contains(&rest), "{screen}");
    }

    #[test]
    fn a_terminal_of_any_size_is_drawn_without_panic() {
        for code in [
            KeyCode::Esc,
            KeyCode::Char('/'),
            KeyCode::Char('?'),
            KeyCode::Enter,
        ] {
            for (width, height) in [(1, 1), (3, 2), (20, 5), (40, 10), (400, 100)] {
                let mut state = state();
                press(&mut state, code);
                screen(&mut state, width, height);
                state.take(nothing(), Instant::now());
                screen(&mut state, width, height);
            }
        }
    }

    #[test]
    fn an_empty_table_says_why_and_what_to_do() {
        let mut state = empty();
        assert!(screen(&mut state, 100, 6).contains("collecting"));
        state.take(nothing(), Instant::now());
        let narrow = screen(&mut state, 40, 12);
        assert!(
            narrow.contains("Start one with flarena run, such as:"),
            "{narrow}"
        );
        assert!(narrow.contains("press a to see"), "{narrow}");
        state.filter = "x".into();
        assert!(screen(&mut state, 100, 6).contains("No process matches"));
    }
}
