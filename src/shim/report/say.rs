//! The library's voice: single lines on stderr, each one `write(2)`, none of them allocating.
//!
//! It is inherited by every child, so it speaks only of settings that it could not use, of
//! failures that a user must know, and when asked (`FLARENA_LOG=info`).

use std::ffi::c_int;
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

use flarena_shared::settings::LogLevel;

use flarena_sys::io::quiet_write;

static LEVEL: AtomicU8 = AtomicU8::new(LogLevel::Warn as u8);
/// False when the process was started without stderr: then fd 2 may be anybody's file.
static STDERR_OPEN: AtomicBool = AtomicBool::new(false);

/// Called once by the constructor.
pub fn configure(level: LogLevel) {
    LEVEL.store(level as u8, Relaxed);
    // SAFETY: F_GETFD only asks whether the descriptor is open.
    let open = unsafe { libc::fcntl(libc::STDERR_FILENO, libc::F_GETFD) } != -1;
    STDERR_OPEN.store(open, Relaxed);
}

/// A line that a user should act on.
pub fn warn(message: fmt::Arguments<'_>) {
    say(LogLevel::Warn, message);
}

/// Why the process ends: told to those, too, who want no line.
pub fn last_words(message: fmt::Arguments<'_>) {
    say(LogLevel::Off, message);
}

/// A line for those who asked.
pub fn info(message: fmt::Arguments<'_>) {
    say(LogLevel::Info, message);
}

fn say(level: LogLevel, message: fmt::Arguments<'_>) {
    if LEVEL.load(Relaxed) < level as u8 {
        return;
    }
    let mut line = Line::new();
    // A line that is too long is cut; it is still the one clear line.
    let _ = write!(line, "flarena: {message}");
    // There is nobody to tell that stderr cannot be written.
    let _ = write_stderr(line.finish());
}

/// Writes a whole line to stderr where the process has one; else the error.
pub fn write_stderr(line: &[u8]) -> Result<(), c_int> {
    if !STDERR_OPEN.load(Relaxed) {
        return Err(libc::EBADF);
    }
    match quiet_write::write(libc::STDERR_FILENO, line)? {
        written if written < line.len() => Err(libc::ENOSPC),
        _ => Ok(()),
    }
}

/// A value of the user's, made safe for a terminal and cut to a readable length.
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

/// A line on the stack.
struct Line {
    bytes: [u8; 1024],
    len: usize,
}

impl Line {
    fn new() -> Line {
        Line {
            bytes: [0; 1024],
            len: 0,
        }
    }

    /// The line with its newline, for which room was kept.
    fn finish(&mut self) -> &[u8] {
        self.bytes[self.len] = b'\n';
        &self.bytes[..=self.len]
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.len() - 1 - self.len;
        let taken = text.len().min(room);
        self.bytes[self.len..self.len + taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.len += taken;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_cut_and_cleaned() {
        assert_eq!(Quoted(b"a\x1b[31m\nb").to_string(), "a?[31m?b");
        assert!(Quoted(&[b'x'; 10_000]).to_string().len() < 170);
    }

    #[test]
    fn a_line_that_is_too_long_still_ends() {
        let mut line = Line::new();
        let _ = write!(line, "{}", "y".repeat(5000));
        assert_eq!(
            (line.finish().len(), line.finish().last()),
            (1024, Some(&b'\n'))
        );
    }
}
