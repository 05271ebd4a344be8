//! Draws `top`: a heading, the table, and a line of keys.

use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row as TableRow, Table, TableState};
use ratatui::Frame;

use super::columns::{self, Cells, HEADINGS, RIGHT_ALIGNED};
use super::row::Row;
use super::state::{Hidden, Mode, State};
use crate::units::bytes;

const KEYS: &str = "q quit  t trim  s sort  r reverse  / filter  a all  ? help";

const HELP: &str = "\
arrows, j k, PgUp PgDn, Home End   select a process
t                                  trim: make it return its free memory
s or >, <                          sort by the next or previous column
r                                  reverse the order
/                                  filter: show rows that contain a text
Esc                                clear the filter
a                                  also show processes without a control channel
Space                              refresh now
q, Ctrl-C                          quit

RSS       resident set            HISTORY   RSS at the last markers and now;
                                            without markers, the last samples
LIVE      in use by the program   CACHED    pages of freed large blocks
RETAINED  free in the allocator   LIMIT     memory limit of the cgroup
COMMAND   the program; for Python its script or module, never arguments
Columns without values are left out; a narrow terminal drops columns at the right.";

pub fn draw(frame: &mut Frame, state: &mut State) {
    let [head, body, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    state.page = usize::from(body.height.saturating_sub(1)).max(1);
    let visible = state.visible();
    let text = heading(&visible, state.hidden(), head.width.into());
    frame.render_widget(Line::from(text).bold(), head);
    draw_table(frame, body, state, &visible);
    frame.render_widget(footer(state, &visible), foot);
    if state.mode == Mode::Help {
        draw_help(frame);
    }
}

/// The longest heading that fits. Without room the sums are left out first, because the rows show
/// the sizes, but not the number of hidden processes.
fn heading(rows: &[&Row], hidden: Hidden, room: usize) -> String {
    let sum = |size: fn(&Row) -> Option<u64>| bytes(rows.iter().filter_map(|row| size(row)).sum());
    let count = rows.len();
    let noun = if count == 1 { "process" } else { "processes" };
    let (mut why, mut number) = (String::new(), String::new());
    if hidden.count() > 0 {
        why = format!("  hidden: {}", hidden.text("a"));
        number = format!("  {} hidden", hidden.count());
    }
    let rss = format!("  rss {}", sum(|row| row.rss_bytes));
    let live = format!("  live {}", sum(|row| row.live_bytes));
    let texts = [
        format!("flarena top  {count} {noun}{why}{rss}{live}"),
        format!("flarena top  {count} {noun}{why}{rss}"),
        format!("flarena top  {count} {noun}{why}"),
        format!("{count} {noun}{why}"),
        format!("{count} {noun}{number}"),
    ];
    let mut fits = texts.iter().filter(|text| text.chars().count() <= room);
    let text = fits.next().or(texts.last());
    text.cloned().unwrap_or_default()
}

fn draw_table(frame: &mut Frame, area: Rect, state: &State, rows: &[&Row]) {
    let cells: Vec<Cells> = rows.iter().map(|row| row.cells()).collect();
    let widths = columns::widths(&cells);
    let shown = columns::shown(&cells, &widths, area.width.into());
    let header = shown.iter().map(|column| {
        let cell = aligned(*column, HEADINGS[*column]);
        if *column == state.order.key.column() {
            cell.reversed()
        } else {
            cell.bold()
        }
    });
    let cell = |cells: &Cells, column: usize| aligned(column, cells[column].clone());
    let body = cells
        .iter()
        .map(|cells| TableRow::new(shown.iter().map(|column| cell(cells, *column))));
    let widths = shown
        .iter()
        .map(|column| Constraint::Length(widths[*column] as u16));
    let table = Table::new(body, widths)
        .header(TableRow::new(header))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut selected = TableState::new().with_selected(state.selection());
    frame.render_stateful_widget(table, area, &mut selected);
    if rows.is_empty() {
        let lines = Rect {
            y: area.y + area.height.min(2),
            height: area.height.min(1),
            ..area
        };
        frame.render_widget(Line::from(why_empty(state)), lines.intersection(area));
    }
}

fn aligned<'a>(column: usize, text: impl Into<Line<'a>>) -> Cell<'a> {
    let line = text.into();
    Cell::from(if RIGHT_ALIGNED.contains(&column) {
        line.right_aligned()
    } else {
        line
    })
}

fn why_empty(state: &State) -> &'static str {
    if !state.has_sample {
        "collecting processes"
    } else if state.filter.is_empty() {
        "no process with a control channel; start one with flarena run, or press a for all"
    } else {
        "no process matches the filter"
    }
}

fn footer<'a>(state: &'a State, rows: &[&'a Row]) -> Line<'a> {
    if state.mode == Mode::Filter {
        return Line::from(format!("filter: {}_", state.filter));
    }
    let note = state
        .selection()
        .and_then(|place| rows.get(place)?.note.as_deref());
    let texts = [state.message.as_str(), note.unwrap_or_default()];
    let text = texts
        .into_iter()
        .find(|text| !text.is_empty())
        .unwrap_or(KEYS);
    if state.filter.is_empty() {
        return Line::from(text);
    }
    Line::from(format!("filter: {}  {text}", state.filter))
}

fn draw_help(frame: &mut Frame) {
    let height = HELP.lines().count() as u16 + 2;
    let width = HELP.lines().map(str::len).max().unwrap_or(0) as u16 + 4;
    let area = frame
        .area()
        .centered(Constraint::Length(width), Constraint::Length(height));
    let area = area.intersection(frame.area());
    let block = Block::bordered().title(" keys ");
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(HELP).block(block), area);
}

#[cfg(test)]
mod tests {
    use super::super::row::{ChannelFilter, NoChannel, Sample};
    use super::super::sort::{Order, SortKey};
    use super::*;
    use ratatui::backend::TestBackend;
    use ratatui::Terminal;

    fn screen(state: &mut State, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, state)).unwrap();
        terminal.backend().to_string()
    }

    fn state() -> State {
        let mut state = State::new(
            Order::by(SortKey::Rss),
            String::new(),
            ChannelFilter::WithChannel,
        );
        let row = Row {
            pid: 4242,
            site: Some("site-1".into()),
            stage: Some("before_aggregation".into()),
            rss_bytes: Some(512 << 20),
            ..Row::default()
        };
        state.take(Sample {
            rows: vec![row],
            no_channel: NoChannel {
                small: 3,
                others: 0,
            },
        });
        state
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
            "hidden: 3 small (a)",
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
            screen.contains("hidden: 3 small") && screen.contains("HISTORY"),
            "{screen}"
        );
    }

    #[test]
    fn a_narrow_heading_drops_the_sums_before_the_hidden_processes() {
        let hidden = Hidden {
            off_screen: 4,
            filtered_out: 0,
            no_channel: NoChannel {
                small: 12,
                others: 0,
            },
        };
        let row = Row::default();
        let at = |room| heading(&[&row], hidden, room);
        assert_eq!(
            at(80),
            "flarena top  1 process  hidden: 4 off screen, 12 small (a)  rss 0 B  live 0 B"
        );
        assert_eq!(
            at(60),
            "flarena top  1 process  hidden: 4 off screen, 12 small (a)"
        );
        assert_eq!(at(40), "1 process  16 hidden");
        let all = heading(&[&row], Hidden::default(), 40);
        assert_eq!(all, "flarena top  1 process  rss 0 B");
    }

    #[test]
    fn a_terminal_of_any_size_is_drawn_without_panic() {
        for mode in [Mode::Browse, Mode::Filter, Mode::Help] {
            for (width, height) in [(1, 1), (3, 2), (20, 5), (400, 100)] {
                let mut state = state();
                state.mode = mode;
                screen(&mut state, width, height);
                state.take(Sample::default());
                screen(&mut state, width, height);
            }
        }
    }

    #[test]
    fn an_empty_table_says_why_and_what_to_do() {
        let mut state = State::new(
            Order::by(SortKey::Rss),
            String::new(),
            ChannelFilter::WithChannel,
        );
        assert!(screen(&mut state, 100, 6).contains("collecting"));
        state.take(Sample::default());
        assert!(screen(&mut state, 100, 6).contains("flarena run"));
        state.filter = "x".into();
        assert!(screen(&mut state, 100, 6).contains("no process matches"));
    }
}
