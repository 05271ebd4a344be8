use super::super::table::{COLUMNS, RSS};
use super::*;

fn empty() -> State {
    State {
        order: Order::by(RSS),
        shown: (0..COUNT).collect(),
        ..State::default()
    }
}

fn sample(rows: Vec<Row>) -> Sample {
    Sample {
        rows,
        ..Sample::default()
    }
}

fn state() -> State {
    let row = |pid, site: &str, rss| Row {
        process: Process {
            pid,
            start_ticks: 0,
        },
        site: Some(site.to_owned()),
        rss_bytes: Some(rss),
        ..Row::default()
    };
    let mut state = empty();
    let rows = vec![
        row(1, "site-1", 10),
        row(2, "site-2", 30),
        row(3, "site-3", 20),
    ];
    state.take(sample(rows), Instant::now());
    state
}

const THIRD: Process = Process {
    pid: 3,
    start_ticks: 0,
};

fn pids(state: &State) -> Vec<i32> {
    state.visible().iter().map(|row| row.process.pid).collect()
}

fn press(state: &mut State, codes: &[KeyCode]) -> Option<Action> {
    let mut keys = codes.iter().map(|code| KeyEvent::from(*code));
    keys.find_map(|key| state.key(key))
}

fn type_in(state: &mut State, text: &str) -> Option<Action> {
    let codes: Vec<KeyCode> = text.chars().map(KeyCode::Char).collect();
    press(state, &codes)
}

#[test]
fn the_largest_process_is_first_and_r_reverses_the_order() {
    let mut state = state();
    assert_eq!(pids(&state), [2, 3, 1]);
    type_in(&mut state, "r");
    assert_eq!(pids(&state), [1, 3, 2]);
}

#[test]
fn the_filter_applies_while_it_is_typed_and_escape_clears_it() {
    let mut state = state();
    type_in(&mut state, "/SITE-2");
    assert_eq!(pids(&state), [2]);
    press(&mut state, &[KeyCode::Backspace]);
    assert_eq!(pids(&state).len(), 3);
    press(&mut state, &[KeyCode::Char('3'), KeyCode::Enter]);
    assert_eq!((pids(&state), state.view), (vec![3], View::Table));
    press(&mut state, &[KeyCode::Esc]);
    assert_eq!(pids(&state).len(), 3);
}

#[test]
fn command_keys_are_plain_letters_inside_the_filter() {
    let mut state = state();
    assert_eq!(type_in(&mut state, "/qtr"), None);
    assert_eq!(state.filter, "qtr");
}

#[test]
fn t_trims_the_selected_process_after_its_row_moved() {
    let mut state = state();
    press(&mut state, &[KeyCode::Down]);
    assert_eq!(state.selection(), Some(1));
    let mut rows: Vec<Row> = state.visible().into_iter().cloned().collect();
    rows[1].rss_bytes = Some(99);
    state.take(sample(rows), Instant::now());
    assert_eq!(state.selection(), Some(0));
    assert_eq!(type_in(&mut state, "t"), Some(Action::Trim(THIRD)));
}

#[test]
fn the_selection_stops_at_the_ends() {
    let mut state = state();
    press(&mut state, &[KeyCode::Up, KeyCode::Up]);
    assert_eq!(state.selection(), Some(0));
    let codes = [KeyCode::End, KeyCode::Down, KeyCode::PageDown];
    press(&mut state, &codes);
    assert_eq!(state.selection(), Some(2));
    press(&mut state, &[KeyCode::Home]);
    assert_eq!(state.selection(), Some(0));
}

#[test]
fn keys_without_any_process_do_nothing() {
    let mut state = empty();
    let codes = [
        KeyCode::Down,
        KeyCode::End,
        KeyCode::PageUp,
        KeyCode::Enter,
        KeyCode::Char('t'),
    ];
    assert_eq!(press(&mut state, &codes), None);
    assert_eq!((state.selection(), state.view), (None, View::Table));
}

#[test]
fn s_sorts_by_the_next_shown_column_in_its_natural_order() {
    let mut state = state();
    let mut after = |keys: &[KeyCode]| {
        press(&mut state, keys);
        let name = COLUMNS[state.order.column].name;
        (name, state.order.descending)
    };
    assert_eq!(after(&[KeyCode::Char('s')]), ("growth", true));
    assert_eq!(after(&[KeyCode::Left, KeyCode::Left]), ("stage", false));
    state.shown = vec![0, RSS];
    let mut after = |code| {
        press(&mut state, &[code]);
        COLUMNS[state.order.column].name
    };
    let codes = [KeyCode::Right, KeyCode::Right, KeyCode::Left, KeyCode::Left];
    assert_eq!(codes.map(&mut after), ["rss", "pid", "rss", "pid"]);
}

#[test]
fn q_and_control_c_quit() {
    assert_eq!(type_in(&mut state(), "q"), Some(Action::Quit));
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(state().key(interrupt), Some(Action::Quit));
}

#[test]
fn growth_per_minute_is_that_of_the_last_two_minutes_of_one_process() {
    let mut state = empty();
    let start = Instant::now();
    let mut growth_at = |seconds: u64, start_ticks, rss| {
        let row = Row {
            process: Process {
                pid: 1,
                start_ticks,
            },
            rss_bytes: Some(rss),
            ..Row::default()
        };
        state.take(sample(vec![row]), start + Duration::from_secs(seconds));
        state.visible()[0].growth_per_minute
    };
    assert_eq!(growth_at(0, 7, 5000), None);
    assert_eq!(growth_at(2, 7, 1000), None);
    assert_eq!(growth_at(62, 7, 1600), Some(-3400.0 / 62.0 * 60.0));
    assert_eq!(growth_at(122, 7, 2200), Some(600.0));
    assert_eq!(growth_at(132, 8, 3), None);
}

#[test]
fn enter_opens_the_selected_process_and_another_key_closes_it() {
    let mut state = state();
    press(&mut state, &[KeyCode::Down]);
    assert_eq!(press(&mut state, &[KeyCode::Enter]), Some(Action::Refresh));
    assert_eq!(type_in(&mut state, "jjk"), None);
    assert_eq!((state.view, state.scroll), (View::Detail(THIRD), 1));
    assert_eq!(type_in(&mut state, "t"), Some(Action::Trim(THIRD)));
    press(&mut state, &[KeyCode::Esc]);
    assert_eq!(state.view, View::Table);
}
