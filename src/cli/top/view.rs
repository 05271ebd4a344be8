//! Draws `top`: a heading, the table, and a line of keys; or the help, or one process.

use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row as TableRow, Table, TableState};
use ratatui::Frame;

use super::columns::{Cells, COLUMNS};
use super::row::Row;
use super::state::{Hidden, Mode, State};
use super::table::{self, HOW_TO_START, NOTHING_RUNS};
use crate::output::{plain, wrap};
use crate::units::{bytes, plural};

/// The most important first: a narrow terminal drops the last ones.
const KEYS: [&str; 8] = [
    "q quit",
    "? help",
    "Enter details",
    "t trim",
    "s sort",
    "/ filter",
    "a all",
    "r reverse",
];
const KEYS_OF_TEXT: [&str; 4] = [
    "any other key closes this",
    "arrows scroll",
    "t trim",
    "? help",
];

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

NAME        the name from flarena run --name
RSS         memory of the process that is in RAM
GROWTH/MIN  change of RSS per minute, over the last two minutes
LIVE        allocated by the program and not freed
CACHED      pages of freed large blocks, kept for reuse
RETAINED    free memory in the allocator
LIMIT       memory limit of its control group
COMMAND     the program, for Python its script or module
HISTORY     RSS at its last markers, then at each update
Columns that are empty or do not fit are left out.";

pub fn draw(frame: &mut Frame, state: &mut State) {
    let [head, body, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    state.page = usize::from(body.height.saturating_sub(1)).max(1);
    let visible = state.visible();
    let text = heading(&visible, state, head.width.into());
    frame.render_widget(Line::from(text).bold(), head);
    let shown = draw_table(frame, body, state, &visible);
    let footer = footer(state, &visible, foot.width.into());
    frame.render_widget(Line::from(footer), foot);
    state.shown = shown;
    match (state.mode, &state.detail) {
        (Mode::Help, _) => draw_text(frame, body, " help ", HELP, &mut state.scroll),
        (Mode::Detail, Some((target, text))) => {
            let title = format!(" {} ", target.pid);
            let text = text.as_deref().unwrap_or("asking the process");
            draw_text(frame, body, &title, text, &mut state.scroll);
        }
        _ => {}
    }
}

/// The longest heading that fits. Without room the sums are left out first, because the rows show
/// the sizes, but not the number of hidden processes.
fn heading(rows: &[&Row], state: &State, room: usize) -> String {
    let sum = |size: fn(&Row) -> Option<u64>| bytes(rows.iter().filter_map(|row| size(row)).sum());
    let hidden: Hidden = state.hidden();
    let count = plural(rows.len() as u64, "process");
    let (mut why, mut number) = (String::new(), String::new());
    if hidden.count() > 0 {
        why = format!("  hidden: {}", hidden.text("a"));
        number = format!("  {} hidden", hidden.count());
    }
    let rss = format!("  rss {}", sum(|row| row.rss_bytes));
    let live = format!("  live {}", sum(|row| row.live_bytes));
    let total = state.room.map_or(String::new(), |total| {
        let percent = total.used_bytes as f64 / total.total_bytes.max(1) as f64 * 100.0;
        format!(
            "  {} {percent:.0} % of {}",
            total.of,
            bytes(total.total_bytes)
        )
    });
    let texts = [
        format!("flarena top  {count}{why}{rss}{live}{total}"),
        format!("flarena top  {count}{why}{rss}{total}"),
        format!("{count}{why}{rss}{total}"),
        format!("{count}{number}{rss}{total}"),
        format!("{count}{why}{total}"),
        format!("{count}{why}"),
        format!("{count}{number}"),
    ];
    let mut fits = texts.iter().filter(|text| text.chars().count() <= room);
    let text = fits.next().or(texts.last());
    text.cloned().unwrap_or_default()
}

/// Returns the shown columns.
fn draw_table(frame: &mut Frame, area: Rect, state: &State, rows: &[&Row]) -> Vec<usize> {
    let cells: Vec<Cells> = rows.iter().map(|row| row.cells()).collect();
    let layout = table::layout(&cells, Some(area.width.into()), state.order);
    let header = layout.iter().map(|&(column, _)| {
        let cell = aligned(column, table::heading(column, state.order));
        if column == state.order.key.column() {
            cell.reversed()
        } else {
            cell.bold()
        }
    });
    let body = rows.iter().zip(&cells).map(|(row, cells)| {
        let cells = layout
            .iter()
            .map(|&(column, width)| aligned(column, table::cell(row, cells, column, width)));
        TableRow::new(cells)
    });
    let widths = layout
        .iter()
        .map(|(_, width)| Constraint::Length(*width as u16));
    let widget = Table::new(body, widths)
        .header(TableRow::new(header))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut selected = TableState::new().with_selected(state.selection());
    frame.render_stateful_widget(widget, area, &mut selected);
    if rows.is_empty() {
        let below = Rect {
            y: area.y + area.height.min(2),
            height: area.height.saturating_sub(2),
            ..area
        };
        let lines = why_empty(state);
        let lines = lines
            .iter()
            .flat_map(|line| wrap(line, Some(area.width.into())));
        frame.render_widget(Text::from_iter(lines), below);
    }
    layout.into_iter().map(|(column, _)| column).collect()
}

fn aligned<'a>(column: usize, text: impl Into<Line<'a>>) -> Cell<'a> {
    let line = text.into();
    Cell::from(if COLUMNS[column].is_number {
        line.right_aligned()
    } else {
        line
    })
}

fn why_empty(state: &State) -> &'static [&'static str] {
    if !state.has_sample {
        &["collecting processes"]
    } else if state.filter.is_empty() {
        &[
            NOTHING_RUNS,
            HOW_TO_START,
            "Small processes have no control channel; press a to see them, too.",
        ]
    } else {
        &["No process matches the filter; Esc clears it."]
    }
}

fn footer(state: &State, rows: &[&Row], room: usize) -> String {
    let filter = match (state.mode, state.filter.as_str()) {
        (Mode::Filter, filter) => return format!("filter: {filter}_"),
        (_, "") => String::new(),
        (_, filter) => format!("filter: {filter}  "),
    };
    let row = state.selection().and_then(|place| rows.get(place));
    let note = row.and_then(|row| row.note.as_deref());
    let keys = match state.mode {
        Mode::Help => keys(&KEYS_OF_TEXT[..2], room),
        Mode::Detail => keys(&KEYS_OF_TEXT, room),
        _ => keys(&KEYS, room.saturating_sub(filter.chars().count())),
    };
    let message = Some(state.message.as_str()).filter(|text| !text.is_empty());
    let note = note.filter(|_| state.mode == Mode::Browse);
    filter + message.or(note).unwrap_or(&keys)
}

/// As many keys as fit.
fn keys(keys: &[&str], room: usize) -> String {
    let mut line = String::new();
    for key in keys {
        let gap = if line.is_empty() { "" } else { "  " };
        if line.chars().count() + gap.len() + key.len() > room {
            break;
        }
        line = line + gap + key;
    }
    line
}

/// A text in a frame. Long lines go on in the next one. `scroll` is limited to the length.
fn draw_text(frame: &mut Frame, area: Rect, title: &str, text: &str, scroll: &mut usize) {
    let block = Block::bordered().title(title.to_owned());
    let inside = block.inner(area);
    let width = usize::from(inside.width).max(1);
    let lines: Vec<String> = text.lines().flat_map(|line| cut(line, width)).collect();
    *scroll = (*scroll).min(lines.len().saturating_sub(inside.height.into()));
    let shown = lines.into_iter().skip(*scroll).take(inside.height.into());
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(Text::from_iter(shown)).block(block), area);
}

/// The line in pieces of this width, which end between words if they can.
fn cut(line: &str, width: usize) -> Vec<String> {
    let letters: Vec<char> = plain(line).chars().collect();
    let margin = letters.iter().take_while(|letter| **letter == ' ').count();
    let (mut pieces, mut rest) = (Vec::new(), letters.as_slice());
    while rest.len() > width {
        let space = rest[..=width].iter().rposition(|letter| *letter == ' ');
        let end = space.filter(|end| *end > margin).unwrap_or(width);
        pieces.push(String::from_iter(&rest[..end]));
        rest = &rest[end..];
        let spaces = rest.iter().take_while(|letter| **letter == ' ').count();
        rest = &rest[spaces..];
    }
    pieces.push(String::from_iter(rest));
    pieces
}

#[cfg(test)]
mod tests {
    use super::super::row::{ChannelFilter, NoChannel, Sample};
    use super::super::sort::{Order, SortKey};
    use super::*;
    use crate::proc::Room;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent};
    use ratatui::Terminal;

    const ROOM: Room = Room {
        used_bytes: 3 << 30,
        total_bytes: 8 << 30,
        of: "cgroup",
    };

    fn nothing() -> Sample {
        Sample::new(Vec::new(), NoChannel::default(), Some(ROOM))
    }

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
        let no_channel = NoChannel {
            small: 3,
            others: 0,
        };
        state.take(Sample::new(vec![row], no_channel, Some(ROOM)));
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
        let mut state = state();
        let mut at = |room| {
            screen(&mut state, room, 6)
                .lines()
                .next()
                .unwrap()
                .to_owned()
        };
        for (room, heading) in [
            (100, "flarena top  1 process  hidden: 3 small (a)  rss 512.0 MB  live 0 KB  cgroup 38 % of 8.00 GB"),
            (90, "flarena top  1 process  hidden: 3 small (a)  rss 512.0 MB  cgroup 38 % of 8.00 GB"),
            (70, "1 process  hidden: 3 small (a)  rss 512.0 MB  cgroup 38 % of 8.00 GB"),
            (65, "1 process  3 hidden  rss 512.0 MB  cgroup 38 % of 8.00 GB"),
            (50, "1 process  hidden: 3 small (a)"),
            (20, "1 process  3 hidden"),
        ] {
            assert_eq!(at(room).trim_matches(['"', ' ']), heading, "{room}");
        }
    }

    #[test]
    fn the_sorted_column_has_an_arrow_and_s_moves_it_over_the_shown_columns() {
        let mut state = state();
        let press = |state: &mut State, code| state.key(KeyEvent::from(KeyCode::Char(code)));
        assert!(screen(&mut state, 80, 6).contains("RSS▼"));
        press(&mut state, 'r');
        assert!(screen(&mut state, 80, 6).contains("RSS▲"));
        press(&mut state, 's');
        assert!(screen(&mut state, 80, 6).contains("HISTORY▼"));
    }

    #[test]
    fn the_help_fits_into_80_columns_and_24_lines() {
        let mut state = state();
        state.mode = Mode::Help;
        let screen = screen(&mut state, 80, 24);
        for line in HELP.lines() {
            assert!(screen.contains(line), "{line}\n{screen}");
        }
    }

    #[test]
    fn a_text_that_does_not_fit_is_scrolled_to_its_end() {
        let mut state = state();
        state.mode = Mode::Help;
        let first = screen(&mut state, 40, 10);
        assert!(
            first.contains("select a process") && first.contains("any other key closes"),
            "{first}"
        );
        state.key(KeyEvent::from(KeyCode::End));
        let last = screen(&mut state, 40, 10);
        assert!(last.contains("re left out."), "{last}");
        assert!(state.scroll < 100);
    }

    #[test]
    fn a_process_is_shown_with_all_that_it_tells() {
        let mut state = state();
        state.key(KeyEvent::from(KeyCode::Enter));
        assert!(screen(&mut state, 80, 24).contains("asking the process"));
        let (target, _) = state.detail.clone().unwrap();
        state.show_detail(target, format!("Stages\n{}\u{1b}", "x".repeat(100)));
        let screen = screen(&mut state, 80, 24);
        assert!(
            screen.contains(" 4242 ") && screen.contains("Stages"),
            "{screen}"
        );
        let rest = format!("│{}?", "x".repeat(22));
        assert!(screen.contains(&rest), "{screen}");
    }

    #[test]
    fn a_long_line_of_a_text_breaks_between_words() {
        assert_eq!(
            cut("  none: it records no sites", 15),
            ["  none: it", "records no", "sites"]
        );
        assert_eq!(cut("abcdefgh ij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(cut("", 4), [""]);
        assert_eq!(cut("ab cd", 5), ["ab cd"]);
    }

    #[test]
    fn a_terminal_of_any_size_is_drawn_without_panic() {
        for mode in [Mode::Browse, Mode::Filter, Mode::Help, Mode::Detail] {
            for (width, height) in [(1, 1), (3, 2), (20, 5), (40, 10), (400, 100)] {
                let mut state = state();
                state.key(KeyEvent::from(KeyCode::Enter));
                state.mode = mode;
                screen(&mut state, width, height);
                state.take(nothing());
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
        state.take(nothing());
        let narrow = screen(&mut state, 40, 10);
        assert!(
            narrow.contains("Start one with flarena run, such as:"),
            "{narrow}"
        );
        assert!(narrow.contains("press a to see"), "{narrow}");
        state.filter = "x".into();
        assert!(screen(&mut state, 100, 6).contains("No process matches"));
    }
}
