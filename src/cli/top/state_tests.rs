use super::super::sort::SortKey;
use super::*;

fn state() -> State {
    let row = |pid, site: &str, rss| Row {
        pid,
        site: Some(site.to_owned()),
        rss_bytes: Some(rss),
        ..Row::default()
    };
    let mut state = State::new(
        Order::by(SortKey::Rss),
        String::new(),
        ChannelFilter::WithChannel,
    );
    state.take(sample(vec![
        row(1, "site-1", 10),
        row(2, "site-2", 30),
        row(3, "site-3", 20),
    ]));
    state
}

fn sample(rows: Vec<Row>) -> Sample {
    Sample::new(rows, NoChannel::default(), None)
}

fn pids(state: &State) -> Vec<i32> {
    state.visible().iter().map(|row| row.pid).collect()
}

fn press(state: &mut State, codes: &[KeyCode]) -> Action {
    let press = |action, code: &KeyCode| match action {
        Action::None => state.key(KeyEvent::from(*code)),
        other => other,
    };
    codes.iter().fold(Action::None, press)
}

fn type_in(state: &mut State, text: &str) -> Action {
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
    assert_eq!((pids(&state), state.mode), (vec![3], Mode::Browse));
    press(&mut state, &[KeyCode::Esc]);
    assert_eq!(pids(&state).len(), 3);
}

#[test]
fn command_keys_are_plain_letters_inside_the_filter() {
    let mut state = state();
    assert_eq!(type_in(&mut state, "/qtr"), Action::None);
    assert_eq!(state.filter, "qtr");
}

#[test]
fn t_trims_the_selected_process_after_its_row_moved() {
    let mut state = state();
    press(&mut state, &[KeyCode::Down]);
    assert_eq!(state.selection(), Some(1));
    let mut rows: Vec<Row> = state.visible().into_iter().cloned().collect();
    rows.iter_mut()
        .filter(|row| row.pid == 3)
        .for_each(|row| row.rss_bytes = Some(99));
    state.take(sample(rows));
    assert_eq!(state.selection(), Some(0));
    assert_eq!(
        type_in(&mut state, "t"),
        Action::Trim(Target {
            pid: 3,
            start_ticks: 0
        })
    );
}

#[test]
fn the_selection_stops_at_the_ends() {
    let mut state = state();
    press(&mut state, &[KeyCode::Up, KeyCode::Up]);
    assert_eq!(state.selection(), Some(0));
    press(
        &mut state,
        &[KeyCode::End, KeyCode::Down, KeyCode::PageDown],
    );
    assert_eq!(state.selection(), Some(2));
    press(&mut state, &[KeyCode::Home]);
    assert_eq!(state.selection(), Some(0));
}

#[test]
fn keys_without_any_process_do_nothing() {
    let mut state = State::new(
        Order::by(SortKey::Rss),
        String::new(),
        ChannelFilter::WithChannel,
    );
    let codes = [
        KeyCode::Down,
        KeyCode::End,
        KeyCode::PageUp,
        KeyCode::Char('t'),
    ];
    assert_eq!(press(&mut state, &codes), Action::None);
    assert_eq!(state.selection(), None);
}

#[test]
fn s_sorts_by_the_next_column_in_its_natural_order() {
    let mut state = state();
    state.order = Order::by(SortKey::Pid);
    type_in(&mut state, "s");
    assert_eq!(
        state.order,
        Order {
            key: SortKey::User,
            descending: false
        }
    );
    press(&mut state, &[KeyCode::Left, KeyCode::Left]);
    assert_eq!(state.order.key, SortKey::History);
}

#[test]
fn q_and_control_c_quit_and_any_key_closes_the_help() {
    assert_eq!(type_in(&mut state(), "q"), Action::Quit);
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(state().key(interrupt), Action::Quit);
    let mut state = state();
    assert_eq!(type_in(&mut state, "?q"), Action::None);
    assert_eq!(state.mode, Mode::Browse);
}

#[test]
fn hidden_processes_are_counted_by_reason() {
    let mut state = state();
    state.page = 10;
    assert_eq!(state.hidden(), Hidden::default());
    state.page = 2;
    state.no_channel.small = 5;
    assert_eq!(state.hidden().text("a"), "1 off screen, 5 small (a)");
    type_in(&mut state, "/site-2");
    let hidden = state.hidden();
    assert_eq!(hidden.text("--all"), "2 filtered out, 5 small (--all)");
    assert_eq!(hidden.count(), 7);
    state.no_channel.others = 1;
    let text = "2 filtered out, 5 small, 1 without a channel (a)";
    assert_eq!(state.hidden().text("a"), text);
    assert_eq!(state.hidden().count(), 8);
}

#[test]
fn the_history_begins_with_the_markers_before_the_first_update() {
    let mut state = State::new(
        Order::by(SortKey::Rss),
        String::new(),
        ChannelFilter::WithChannel,
    );
    let row = |marked: &[u64], rss| Row {
        pid: 1,
        rss_bytes: Some(rss),
        marked: marked.to_vec(),
        ..Row::default()
    };
    state.take(sample(vec![row(&[1, 2, 3], 9)]));
    assert_eq!(state.visible()[0].history, [1, 2, 3, 9]);
    state.take(sample(vec![row(&[2, 3, 8], 8)]));
    assert_eq!(state.visible()[0].history, [1, 2, 3, 9, 8]);
}

#[test]
fn growth_per_minute_is_that_of_the_last_two_minutes() {
    let mut state = State::new(
        Order::by(SortKey::Growth),
        String::new(),
        ChannelFilter::WithChannel,
    );
    let start = Instant::now();
    let mut growth_at = |seconds: u64, rss| {
        let row = Row {
            pid: 1,
            rss_bytes: Some(rss),
            ..Row::default()
        };
        state.take(Sample {
            at: start + Duration::from_secs(seconds),
            ..sample(vec![row])
        });
        state.visible()[0].growth_per_minute
    };
    assert_eq!(growth_at(0, 5000), None);
    assert_eq!(growth_at(2, 1000), None);
    assert_eq!(growth_at(62, 1600), Some(-3400.0 / 62.0 * 60.0));
    assert_eq!(growth_at(122, 2200), Some(600.0));
}

#[test]
fn enter_opens_the_selected_process_and_another_key_closes_it() {
    let mut state = state();
    press(&mut state, &[KeyCode::Down]);
    let third = Target {
        pid: 3,
        start_ticks: 0,
    };
    assert_eq!(press(&mut state, &[KeyCode::Enter]), Action::Detail(third));
    state.show_detail(Target { pid: 2, ..third }, "late answer".into());
    assert_eq!(state.detail, Some((third, None)));
    state.show_detail(third, "text".into());
    assert_eq!(type_in(&mut state, "jjk"), Action::None);
    assert_eq!((state.mode, state.scroll), (Mode::Detail, 1));
    assert_eq!(type_in(&mut state, "t"), Action::Trim(third));
    press(&mut state, &[KeyCode::Esc]);
    assert_eq!((state.mode, state.detail), (Mode::Browse, None));
}

#[test]
fn the_help_key_opens_the_help_from_the_detail_view_of_a_process_that_has_ended() {
    let mut state = state();
    press(&mut state, &[KeyCode::Enter]);
    state.take(sample(Vec::new()));
    assert_eq!(
        (type_in(&mut state, "j?"), state.mode),
        (Action::None, Mode::Help)
    );
    assert_eq!((state.scroll, &state.detail), (0, &None));
    press(&mut state, &[KeyCode::Esc]);
    assert_eq!(state.mode, Mode::Browse);
}

#[test]
fn the_history_of_a_process_ends_when_its_pid_is_reused() {
    let mut state = State::new(
        Order::by(SortKey::Rss),
        String::new(),
        ChannelFilter::WithChannel,
    );
    let row = |start_ticks, rss| Row {
        pid: 1,
        start_ticks,
        rss_bytes: Some(rss),
        ..Row::default()
    };
    for rss in 0..320 {
        state.take(sample(vec![row(7, rss)]));
    }
    assert_eq!(state.visible()[0].history, (20..320).collect::<Vec<u64>>());
    assert_eq!(state.visible()[0].growth_bytes(), 299);
    state.take(sample(vec![row(8, 3)]));
    assert_eq!(state.visible()[0].history, [3]);
}
