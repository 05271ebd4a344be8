//! Draws `top`: a heading, the table, and a line of keys; or one process.

use ratatui::layout::Constraint::{Length, Min};
use ratatui::layout::{Layout, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row as TableRow, Table, Wrap};
use ratatui::Frame;

use super::state::{State, View};
use super::table::{self, COLUMNS, NOTHING_RUNS};
use crate::output::plain;
use crate::units::{or_dash, plural};

/// The most important first: a narrow terminal cuts the last ones.
const KEYS: &str = "q quit  Enter details  t trim  s sort  / filter  a all  r reverse";
const KEYS_OF_DETAIL: &str = "any other key closes this  arrows scroll  t trim";

pub fn draw(frame: &mut Frame, state: &mut State) {
    let [head, body, foot] = Layout::vertical([Length(1), Min(1), Length(1)]).areas(frame.area());
    state.page = usize::from(body.height.saturating_sub(1)).max(1);
    if let Some(sample) = &state.sample {
        let heading = heading(state.visible().len(), sample.hidden);
        frame.render_widget(Line::from(heading).bold(), head);
    }
    frame.render_widget(Line::from(footer(state)), foot);
    draw_table(frame, body, state);
    let View::Detail(process) = state.view else {
        return;
    };
    let text = match state.sample.as_ref().map(|sample| &sample.detail) {
        Some(Some((of, text))) if *of == process => text,
        _ => "asking the process",
    };
    let block = Block::bordered().title(format!(" {} ", process.pid));
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

fn heading(shown: usize, hidden: usize) -> String {
    let shown = plural(shown as u64, "process");
    match hidden {
        0 => shown,
        hidden => format!("{shown}  {hidden} hidden (a)"),
    }
}

fn draw_table(frame: &mut Frame, area: Rect, state: &mut State) {
    let rows: Vec<_> = state.visible().into_iter().map(table::cells).collect();
    let layout = table::layout(&rows, Some(area.width.into()), state.order);
    let cell = |column: usize, text: String| match COLUMNS[column].is_number() {
        true => Cell::from(Line::from(text).right_aligned()),
        false => Cell::from(text),
    };
    let heading = |&(column, _): &(usize, _)| cell(column, state.order.heading(column)).bold();
    let header = layout.iter().map(heading);
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
    format!("{NOTHING_RUNS}\nSmall processes have no control channel; press a to see them, too.")
}

fn footer(state: &State) -> String {
    let selected = state.selection().map(|place| state.visible()[place]);
    let note = selected.and_then(|row| row.note.as_deref());
    let text = match state.view {
        View::Filter => return format!("filter: {}_", state.filter),
        View::Table | View::Detail(_) if !state.message.is_empty() => &state.message,
        View::Detail(_) => KEYS_OF_DETAIL,
        View::Table => note.unwrap_or(KEYS),
    };
    match state.filter.as_str() {
        "" => text.to_owned(),
        filter => format!("filter: {filter}  {text}"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::row::{Row, Sample};
    use super::super::table::{Order, RSS};
    use super::*;
    use crate::proc::Process;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent};
    use ratatui::Terminal;

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
            ..Sample::default()
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
    fn the_sorted_column_has_an_arrow_and_s_moves_it_over_the_shown_columns() {
        let mut state = state();
        assert!(screen(&mut state, 80, 6).contains("RSS▼"));
        press(&mut state, KeyCode::Char('r'));
        assert!(screen(&mut state, 80, 6).contains("RSS▲"));
        press(&mut state, KeyCode::Char('s'));
        assert!(screen(&mut state, 80, 6).contains("COMMAND▲"));
    }

    #[test]
    fn a_text_that_does_not_fit_is_scrolled_to_its_end() {
        let mut state = state();
        press(&mut state, KeyCode::Enter);
        let lines: Vec<String> = (0..50).map(|line| format!("line {line}.")).collect();
        state.sample.as_mut().unwrap().detail = Some((PROCESS, lines.join("\n")));
        let first = screen(&mut state, 40, 10);
        assert!(
            first.contains("line 0.") && first.contains("any other key closes"),
            "{first}"
        );
        press(&mut state, KeyCode::End);
        let last = screen(&mut state, 40, 10);
        assert!(last.contains("line 49."), "{last}");
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
        for code in [KeyCode::Esc, KeyCode::Char('/'), KeyCode::Enter] {
            for (width, height) in [(1, 1), (3, 2), (20, 5), (40, 10), (400, 100)] {
                let mut state = state();
                press(&mut state, code);
                screen(&mut state, width, height);
                state.take(Sample::default(), Instant::now());
                screen(&mut state, width, height);
            }
        }
    }

    #[test]
    fn an_empty_table_says_why_and_what_to_do() {
        let mut state = empty();
        assert!(screen(&mut state, 100, 6).contains("collecting"));
        state.take(Sample::default(), Instant::now());
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
