//! What a process leaves to its program in signals: ignored ones, and the mask. Rust's runtime ignores
//! SIGPIPE before `main` and resets it when it starts a program, so a job that was started with
//! SIGPIPE ignored would die of it. Everything else passes through an exec by itself.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

static SIGPIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);

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
    SIGPIPE_WAS_IGNORED.store(is_ignored, Ordering::Relaxed);
}

/// The program gets SIGPIPE as we got it.
pub fn pass_on(command: &mut Command) {
    if !SIGPIPE_WAS_IGNORED.load(Ordering::Relaxed) {
        return;
    }
    let ignore = || {
        // SAFETY: SIG_IGN installs no handler.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
        Ok(())
    };
    // SAFETY: the closure makes one async-signal-safe call; it runs after the runtime's own reset.
    unsafe { command.pre_exec(ignore) };
}
