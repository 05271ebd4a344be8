//! The loop of `top`. Keys and the terminal are handled here. A separate thread collects the
//! processes, so that a slow answer does not freeze the screen.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::DefaultTerminal;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::row::{self, ChannelFilter, Sample};
use super::state::{Action, State, Target};
use super::{detail, view};
use crate::control::{self, Request};
use crate::proc::{Process, ReadError};
use crate::{output, trim};

/// The longest delay of a key or a signal.
const TICK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};
const TRIM_TIMEOUT: Duration = Duration::from_secs(60);

enum News {
    Sample(Sample),
    Message(String),
    Detail(Target, String),
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
    let (send_news, news) = mpsc::channel();
    let (wake, woken) = mpsc::channel();
    let send_samples = send_news.clone();
    let filter = state.channel_filter;
    thread::spawn(move || collect_repeatedly(filter, interval, &woken, &send_samples));
    while !stop.load(Ordering::Relaxed) {
        terminal.draw(|frame| view::draw(frame, &mut state))?;
        match next_action(&mut state)? {
            Action::Quit => break,
            Action::Trim(target) => start_trim(target, &send_news, &wake),
            Action::Detail(target) => start_detail(target, &send_news),
            Action::Refresh => drop(wake.send(Some(state.channel_filter))),
            Action::None => {}
        }
        for news in news.try_iter() {
            match news {
                News::Sample(sample) => {
                    state.take(sample);
                    // Not while an answer is due: a slow process is asked once.
                    if let Some((target, Some(_))) = &state.detail {
                        start_detail(*target, &send_news);
                    }
                }
                News::Message(message) => state.message = message,
                News::Detail(target, text) => state.show_detail(target, text),
            }
        }
    }
    Ok(())
}

/// Waits a tick for keys. A closed terminal is not read, because crossterm would read its end in a
/// busy loop.
fn next_action(state: &mut State) -> io::Result<Action> {
    let stdin = io::stdin();
    let mut input = [PollFd::new(&stdin, PollFlags::IN)];
    match poll(&mut input, Some(&TICK)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    if input[0]
        .revents()
        .intersects(PollFlags::HUP | PollFlags::ERR)
    {
        return Ok(Action::Quit);
    }
    while event::poll(Duration::ZERO)? {
        let Event::Key(key) = event::read()? else {
            continue;
        };
        if key.kind == KeyEventKind::Release {
            continue;
        }
        state.message.clear();
        match state.key(key) {
            Action::None => {}
            action => return Ok(action),
        }
    }
    Ok(Action::None)
}

/// Collects all processes, then waits for the interval or a refresh.
fn collect_repeatedly(
    mut filter: ChannelFilter,
    interval: Duration,
    woken: &Receiver<Option<ChannelFilter>>,
    news: &Sender<News>,
) {
    while news.send(News::Sample(row::collect(filter))).is_ok() {
        match woken.recv_timeout(interval) {
            Ok(changed) => filter = changed.unwrap_or(filter),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// The process, unless it has ended.
fn find(target: Target) -> Result<Process, ReadError> {
    let found = Process::find(target.pid)?;
    match found.start_ticks == target.start_ticks {
        true => Ok(found),
        false => Err(ReadError::Gone(target.pid)),
    }
}

fn start_trim(target: Target, news: &Sender<News>, wake: &Sender<Option<ChannelFilter>>) {
    let (news, wake, pid) = (news.clone(), wake.clone(), target.pid);
    thread::spawn(move || {
        let outcome = match find(target) {
            Err(_) => ReadError::Gone(pid).to_string(),
            Ok(process) => match control::ask(&process, Request::Trim, TRIM_TIMEOUT) {
                Ok(answer) => format!("{pid}: {}", trim::outcome(&answer)),
                Err(error) => error.to_string(),
            },
        };
        let _ = news.send(News::Message(output::plain(&outcome)));
        let _ = wake.send(None);
    });
}

fn start_detail(target: Target, news: &Sender<News>) {
    let news = news.clone();
    thread::spawn(move || {
        let text =
            find(target).map_or_else(|error| error.to_string(), |found| detail::text(&found));
        let _ = news.send(News::Detail(target, text));
    });
}
