//! The SIGSYS of libpsx. Its versions 2.72 and 2.73 change the credentials of all threads in a handler of this
//! signal: they send it to each thread that `/proc` lists, and wait until the handler has run in each.
//!
//! The governor blocks all signals, because one that is sent to the process belongs to the program. A SIGSYS that
//! was sent to the governor's thread runs its handler between two pieces of work, where this thread holds no lock.

use std::ffi::c_int;
use std::os::fd::{FromRawFd, OwnedFd};

use super::descriptors;
use flarena_sys::proc::procfs;

/// The bit of the signal in the sets of `/proc`.
const SIGSYS: u64 = 1 << (libc::SIGSYS - 1);

pub struct Signal {
    /// Readable while a SIGSYS is pending. `None`: the signal waits for the next tick.
    pub arrival: Option<OwnedFd>,
}

impl Signal {
    pub fn watch() -> Signal {
        Signal {
            arrival: descriptors::keep_open(open),
        }
    }

    /// Runs the handler if the signal was sent to this thread.
    pub fn handle(&mut self) {
        if !is_pending() {
            return;
        }
        let mut buffer = [0; 4096];
        let status = procfs::read_file(c"/proc/thread-self/status", &mut buffer).unwrap_or(&[]);
        let is_pending_for =
            |label| procfs::labelled_set(status, label).is_some_and(|set| set & SIGSYS != 0);
        if is_pending_for(b"ShdPnd:") {
            // For the process. It may stay pending for ever, and a wait for its arrival would not sleep.
            self.arrival = None;
        } else if is_pending_for(b"SigPnd:") {
            change_mask(libc::SIG_UNBLOCK);
            change_mask(libc::SIG_BLOCK);
        }
    }
}

fn open() -> Option<OwnedFd> {
    // SAFETY: the set is initialised, and the call opens a descriptor that nothing else owns.
    unsafe {
        let fd = libc::signalfd(-1, &sigsys(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd))
    }
}

/// True if the signal waits for this thread or for the process.
fn is_pending() -> bool {
    let mut pending = sigsys();
    // SAFETY: the set is valid for the write.
    unsafe { libc::sigpending(&mut pending) == 0 && libc::sigismember(&pending, libc::SIGSYS) == 1 }
}

fn change_mask(how: c_int) {
    // SAFETY: the set is initialised, and the old mask is not asked for.
    unsafe { libc::pthread_sigmask(how, &sigsys(), std::ptr::null_mut()) };
}

fn sigsys() -> libc::sigset_t {
    // SAFETY: zeros are a valid set, and the number is a signal's.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGSYS);
        set
    }
}
