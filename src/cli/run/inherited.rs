//! What a process leaves to its program and Rust's runtime changes before `main`. It ignores SIGPIPE, and resets it when
//! it starts a program, so a job that was started with SIGPIPE ignored would die of it. And it opens /dev/null for a
//! closed standard stream: markers would seem to be written. Everything else passes through an exec by itself.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static SIGPIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);
static WAS_CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

/// Runs before Rust's runtime does.
#[used]
#[link_section = ".init_array"]
static BEFORE_MAIN: extern "C" fn() = remember;

extern "C" fn remember() {
    // SAFETY: `sigaction` is plain data, for which zeroes are valid.
    let mut found: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: without a new action the call only writes the old one to `found`.
    let result = unsafe { libc::sigaction(libc::SIGPIPE, std::ptr::null(), &mut found) };
    let is_ignored = result == 0 && found.sa_sigaction == libc::SIG_IGN;
    SIGPIPE_WAS_IGNORED.store(is_ignored, Relaxed);
    for (stream, was_closed) in (0..).zip(&WAS_CLOSED) {
        // SAFETY: F_GETFD only asks whether the descriptor is open.
        let is_closed = unsafe { libc::fcntl(stream, libc::F_GETFD) } == -1;
        was_closed.store(is_closed, Relaxed);
    }
}

/// The program gets SIGPIPE and the standard streams as we got them.
pub fn pass_on(command: &mut Command) {
    let restore = || {
        if SIGPIPE_WAS_IGNORED.load(Relaxed) {
            // SAFETY: SIG_IGN installs no handler.
            unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
        }
        for (stream, was_closed) in (0..).zip(&WAS_CLOSED) {
            if was_closed.load(Relaxed) {
                // SAFETY: the runtime opened it, nobody owns it, and nothing is read or written before the exec.
                unsafe { libc::close(stream) };
            }
        }
        Ok(())
    };
    // SAFETY: the closure makes async-signal-safe calls only; it runs after the runtime's own reset.
    unsafe { command.pre_exec(restore) };
}
