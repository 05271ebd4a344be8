//! The library's log: single lines on stderr, each written by one `write(2)`, without allocation.
//!
//! Every child process inherits the library. So the log is silent, except for settings that cannot
//! be used, for failures that the user must know about, and when the user asks for more
//! (`FLARENA_LOG=info`). Only the constructor changes the level.

use std::ffi::c_int;
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::sync::OnceLock;

use flarena_shared::settings::LogLevel;
use rustix::event::{self, PollFd, PollFlags, Timespec};
use rustix::fd::BorrowedFd;
use rustix::fs::{FileType, OFlags, Stat};

use flarena_sys::io::quiet_write;
use flarena_sys::{seccomp, thread::helper};

static LEVEL: AtomicU8 = AtomicU8::new(LogLevel::Warn as u8);
/// The device and the inode of stderr when the process started, if it had one.
static STARTED_WITH: OnceLock<(u64, u64)> = OnceLock::new();

/// Called once by the constructor.
pub fn configure(level: LogLevel) {
    LEVEL.store(level as u8, Relaxed);
    if let Ok(file) = rustix::fs::fstat(standard(libc::STDERR_FILENO)) {
        STARTED_WITH.get_or_init(|| identity(&file));
    }
}

/// Logs a problem that the user can act on.
pub fn warn(message: fmt::Arguments<'_>) {
    write_line(LogLevel::Warn, message);
}

/// Logs why the process ends, at every level, `off` included.
pub fn fatal(message: fmt::Arguments<'_>) {
    write_line(LogLevel::Off, message);
}

/// Logs a fact, with `FLARENA_LOG=info` only.
pub fn info(message: fmt::Arguments<'_>) {
    write_line(LogLevel::Info, message);
}

fn write_line(level: LogLevel, message: fmt::Arguments<'_>) {
    if LEVEL.load(Relaxed) < level as u8 {
        return;
    }
    let mut buffer = [0; 1024];
    let line = quiet_write::line(&mut buffer, format_args!("flarena: {message}"));
    // A failure to write stderr cannot be reported anywhere.
    let _ = write_stderr(line);
}

/// Writes a whole line to stderr. Fails if the process has no stderr, if the write fails, and if stderr
/// is a pipe that stays full.
pub fn write_stderr(line: &[u8]) -> Result<(), c_int> {
    if !is_stderr() {
        return Err(libc::EBADF);
    }
    if !await_stderr() {
        return Err(libc::EAGAIN);
    }
    match quiet_write::write(libc::STDERR_FILENO, line)? {
        written if written < line.len() => Err(libc::ENOSPC),
        _ => Ok(()),
    }
}

fn standard(descriptor: c_int) -> BorrowedFd<'static> {
    // SAFETY: the callers only ask what it is, and a number that is not open fails with EBADF.
    unsafe { BorrowedFd::borrow_raw(descriptor) }
}

fn identity(file: &Stat) -> (u64, u64) {
    (file.st_dev, file.st_ino)
}

/// False if descriptor 2 may be a file of the program. After a program has closed stderr, the next file that it opens gets
/// this number. A program that redirected its stderr has made it a terminal, a pipe, a file to append to, or stdout.
fn is_stderr() -> bool {
    let Some(started_with) = STARTED_WITH.get() else {
        return false;
    };
    // A filter that permits write may forbid fstat.
    if !seccomp::allows_common_calls() {
        return true;
    }
    let stderr = standard(libc::STDERR_FILENO);
    let (Ok(file), Ok(flags)) = (rustix::fs::fstat(stderr), rustix::fs::fcntl_getfl(stderr)) else {
        return false;
    };
    if identity(&file) == *started_with {
        return true;
    }
    let is_null = || file.st_rdev == libc::makedev(1, 3);
    if flags.contains(OFlags::RDWR) && !rustix::termios::isatty(stderr) && !is_null() {
        return false;
    }
    match FileType::from_raw_mode(file.st_mode) {
        FileType::CharacterDevice | FileType::Fifo => true,
        FileType::RegularFile => {
            let is_stdout = || {
                rustix::fs::fstat(standard(libc::STDOUT_FILENO))
                    .is_ok_and(|stdout| identity(&stdout) == identity(&file))
            };
            flags.contains(OFlags::APPEND) || is_stdout()
        }
        _ => false,
    }
}

/// False if stderr has no room for a line. A process must not hang because its parent does not read
/// the pipe. The program's threads wait a second, and not again before the pipe has room. The governor
/// does not wait, because it could keep a process alive whose other threads have ended.
fn await_stderr() -> bool {
    static IS_STALLED: AtomicBool = AtomicBool::new(false);
    // A filter that permits write may forbid ppoll.
    if !seccomp::allows_common_calls() {
        return true;
    }
    let may_wait = || !IS_STALLED.load(Relaxed) && !helper::is_current();
    let is_ready = is_stderr_ready(0) || may_wait() && is_stderr_ready(1);
    IS_STALLED.store(!is_ready, Relaxed);
    is_ready
}

/// Not libc's `poll`, which is a cancellation point. A signal ends the wait.
fn is_stderr_ready(seconds: i64) -> bool {
    let mut stderr = [PollFd::from_borrowed_fd(
        standard(libc::STDERR_FILENO),
        PollFlags::OUT,
    )];
    let time_limit = Timespec {
        tv_sec: seconds,
        tv_nsec: 0,
    };
    event::poll(&mut stderr, Some(&time_limit)).is_ok_and(|ready| ready > 0)
}

/// A value from the user, made safe for a terminal and cut to a readable length.
pub struct Quoted<'a>(pub &'a [u8]);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONGEST: usize = 160;
        for &byte in self.0.iter().take(LONGEST) {
            let printable = byte.is_ascii_graphic() || byte == b' ';
            f.write_char(if printable { byte as char } else { '?' })?;
        }
        f.write_str(if self.0.len() > LONGEST { "..." } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_value_is_printable_and_short() {
        assert_eq!(Quoted(b"a\x1b[31m\nb").to_string(), "a?[31m?b");
        assert!(Quoted(&[b'x'; 10_000]).to_string().len() < 170);
    }
}
