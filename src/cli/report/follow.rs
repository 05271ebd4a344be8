//! Repeats a report while its inputs change.
//!
//! On a terminal the report replaces the one before, on the alternate screen. Elsewhere each new
//! report is printed. Ctrl-C and SIGTERM end it; on a terminal the last report stays.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::read;
use crate::output::{fill, print, terminal_width};

/// The shortest pause between two checks of the inputs.
const MIN_PAUSE: Duration = Duration::from_secs(2);
/// A report may take a fifth of the time.
const PAUSES_PER_REPORT: u32 = 4;
/// The longest delay of a signal.
const TICK: Duration = Duration::from_millis(100);
const ALTERNATE_SCREEN: &str = "\x1b[?1049h";
const NORMAL_SCREEN: &str = "\x1b[?1049l";
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Name, length and time of change of each file.
type State = Vec<(PathBuf, u64, Option<SystemTime>)>;

/// Calls `report` at once and whenever an input has changed, until a signal ends it. Returns the
/// last result.
pub fn follow<T>(
    inputs: &[PathBuf],
    mut report: impl FnMut(&mut Vec<u8>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [libc::SIGINT, libc::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let is_terminal = io::stdout().is_terminal();
    if is_terminal {
        write(ALTERNATE_SCREEN)?;
    }
    let result = repeat(inputs, &mut report, &stop, is_terminal);
    if is_terminal {
        write(NORMAL_SCREEN)?;
    }
    let (text, result) = result?;
    if is_terminal {
        print(&text)?;
    }
    Ok(result)
}

fn repeat<T>(
    inputs: &[PathBuf],
    report: &mut impl FnMut(&mut Vec<u8>) -> anyhow::Result<T>,
    stop: &AtomicBool,
    is_terminal: bool,
) -> anyhow::Result<(String, T)> {
    let mut shown = state(inputs);
    loop {
        let begin = Instant::now();
        let mut text = Vec::new();
        let result = report(&mut text)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        match is_terminal {
            true => write(&screen(&text))?,
            false if text.is_empty() => {}
            false => print(&text)?,
        }
        let pause = MIN_PAUSE.max(PAUSES_PER_REPORT * begin.elapsed());
        loop {
            let next = Instant::now() + pause;
            while Instant::now() < next {
                if stop.load(Ordering::Relaxed) {
                    return Ok((text, result));
                }
                thread::sleep(TICK);
            }
            let now = state(inputs);
            if now != shown {
                shown = now;
                break;
            }
        }
    }
}

fn state(inputs: &[PathBuf]) -> State {
    let (files, _) = read::files_of(inputs);
    let state = files.into_iter().map(|path| {
        let meta = fs::metadata(&path).ok();
        let length = meta.as_ref().map_or(0, fs::Metadata::len);
        (path, length, meta.and_then(|meta| meta.modified().ok()))
    });
    state.collect()
}

/// The beginning of the text, as much as fits, and a line about the rest.
fn screen(text: &str) -> String {
    let rows = rustix::termios::tcgetwinsize(io::stdout()).map_or(24, |size| size.ws_row);
    let rows = usize::from(rows.max(3));
    let hint = "Ctrl-C ends and prints the whole report";
    let width = terminal_width().map_or(80, usize::from);
    let hint = fill(hint.split(' '), width).swap_remove(0);
    let shown: Vec<&str> = text.lines().take(rows - 2).collect();
    format!("{CLEAR}{}\n\x1b[7m{hint}\x1b[0m", shown.join("\n"))
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}
