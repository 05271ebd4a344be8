//! Restores two inherited properties that Rust's runtime changes before `main`, so that the command
//! gets them unchanged. The runtime ignores SIGPIPE, and resets it to its default when it starts a
//! program: a job started with SIGPIPE ignored would die of it. The runtime also opens /dev/null
//! for closed standard streams, and markers would be written there without an error.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static SIGPIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);
static WAS_CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

/// Runs before Rust's runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = record;

extern "C" fn record() {
    // SAFETY: `sigaction` is plain data, and zeroes are a valid value.
    let mut found: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: without a new action, the call only writes the current one to `found`.
    let result = unsafe { libc::sigaction(libc::SIGPIPE, std::ptr::null(), &mut found) };
    let is_ignored = result == 0 && found.sa_sigaction == libc::SIG_IGN;
    SIGPIPE_WAS_IGNORED.store(is_ignored, Relaxed);
    for (stream, was_closed) in (0..).zip(&WAS_CLOSED) {
        // SAFETY: F_GETFD only reads the flags of the descriptor.
        let is_closed = unsafe { libc::fcntl(stream, libc::F_GETFD) } == -1;
        was_closed.store(is_closed, Relaxed);
    }
}

/// Gives the command SIGPIPE and the standard streams as this process inherited them.
pub fn restore_in(command: &mut Command) {
    let restore = || {
        if SIGPIPE_WAS_IGNORED.load(Relaxed) {
            // SAFETY: SIG_IGN installs no handler.
            unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
        }
        for (stream, was_closed) in (0..).zip(&WAS_CLOSED) {
            if was_closed.load(Relaxed) {
                // SAFETY: the runtime opened the descriptor and no object owns it. The closure runs
                // right before `exec`.
                unsafe { libc::close(stream) };
            }
        }
        Ok(())
    };
    // SAFETY: the closure only makes async-signal-safe calls.
    unsafe { command.pre_exec(restore) };
}
