//! The loop of `top`. Keys and the terminal are handled here. Other threads ask the processes, so that
//! a slow answer does not freeze the screen.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ratatui::crossterm::event;
use ratatui::DefaultTerminal;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::row::{self, Sample};
use super::state::{Action, State, View};
use super::view;
use crate::control::{self, Request};
use crate::proc::Process;
use crate::{output, trim};

/// The longest delay of a key or a signal.
const TICK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};
const TRIM_TIMEOUT: Duration = Duration::from_secs(60);

enum News {
    Sample(Sample),
    Trimmed(String),
}

pub fn run(state: State, interval: Duration) -> io::Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    // A signal that ends the program must restore the terminal. After SIGHUP there is no terminal.
    for signal in [libc::SIGTERM, libc::SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let mut terminal = ratatui::try_init()?;
    let result = drive(&mut terminal, state, interval, &stop);
    ratatui::try_restore()?;
    result
}

fn drive(
    terminal: &mut DefaultTerminal,
    mut state: State,
    interval: Duration,
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut jobs: Vec<JoinHandle<News>> = Vec::new();
    let (mut due, mut is_sampling) = (Instant::now(), false);
    while !stop.load(Ordering::Relaxed) {
        if !is_sampling && Instant::now() >= due {
            (due, is_sampling) = (Instant::now() + interval, true);
            let all = state.shows_all;
            let detail = match state.view {
                View::Detail(process) => Some(process),
                View::Table | View::Filter => None,
            };
            jobs.push(thread::spawn(move || {
                News::Sample(row::collect(all, detail))
            }));
        }
        terminal.draw(|frame| view::draw(frame, &mut state))?;
        match next_action(&mut state)? {
            Some(Action::Quit) => break,
            Some(Action::Trim(process)) => {
                jobs.push(thread::spawn(move || News::Trimmed(trim(process))));
            }
            Some(Action::Refresh) => due = Instant::now(),
            None => {}
        }
        for job in jobs.extract_if(.., |job| job.is_finished()) {
            match job.join().map_err(|_| io::Error::other("internal error"))? {
                News::Sample(sample) => {
                    is_sampling = false;
                    state.take(sample, Instant::now());
                }
                News::Trimmed(message) => (state.message, due) = (message, Instant::now()),
            }
        }
    }
    Ok(())
}

/// Waits a tick for keys. A closed terminal is not read, because crossterm would read its end in a
/// busy loop.
fn next_action(state: &mut State) -> io::Result<Option<Action>> {
    let stdin = io::stdin();
    let mut input = [PollFd::new(&stdin, PollFlags::IN)];
    match poll(&mut input, Some(&TICK)) {
        // A tick without keys: while a window is dragged, its signals would else stop the drawing.
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let closed = PollFlags::HUP | PollFlags::ERR;
    if input[0].revents().intersects(closed) {
        return Ok(Some(Action::Quit));
    }
    while event::poll(Duration::ZERO)? {
        let Some(key) = event::read()?.as_key_press_event() else {
            continue;
        };
        state.message.clear();
        if let Some(action) = state.key(key) {
            return Ok(Some(action));
        }
    }
    Ok(None)
}

fn trim(process: Process) -> String {
    let outcome = match control::ask(&process, Request::Trim, TRIM_TIMEOUT) {
        Ok(answer) => format!("{}: {}", process.pid, trim::outcome(&answer)),
        Err(error) => error.to_string(),
    };
    output::plain(&outcome)
}
