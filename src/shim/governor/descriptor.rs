//! A descriptor of the governor's in a process that knows nothing of it.
//!
//! In a table of the governor's own it is a number like any other. Where the system allows none, programs close
//! descriptors by number and reuse the numbers: so ours lie above those that programs number by hand, and before
//! each use the inode must still be the one that we opened.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

use super::table;

/// Programs number their descriptors from below.
const LOWEST: c_int = 500;

/// At most one descriptor, and what it was opened as.
pub struct Descriptor {
    fd: AtomicI32,
    inode: AtomicU64,
}

impl Descriptor {
    pub const fn none() -> Descriptor {
        Descriptor {
            fd: AtomicI32::new(-1),
            inode: AtomicU64::new(0),
        }
    }

    /// Keeps a descriptor that was just opened, under a high number where there is one.
    pub fn keep(&self, low: c_int) {
        if table::is_own() {
            self.fd.store(low, Relaxed);
            return;
        }
        // SAFETY: the descriptor was just opened by the caller.
        let high = unsafe { libc::fcntl(low, libc::F_DUPFD_CLOEXEC, LOWEST) };
        let fd = if high >= 0 {
            close(low);
            high
        } else {
            low
        };
        self.inode.store(inode(fd).unwrap_or(0), Relaxed);
        self.fd.store(fd, Relaxed);
    }

    /// The number, while it is still ours.
    pub fn get(&self) -> Option<c_int> {
        let fd = self.fd.load(Relaxed);
        let is_ours = || table::is_own() || inode(fd) == Some(self.inode.load(Relaxed));
        (fd >= 0 && is_ours()).then_some(fd)
    }

    /// Closes it, unless the number is somebody else's by now.
    pub fn forget(&self) {
        if let Some(fd) = self.get() {
            close(fd);
        }
        self.fd.store(-1, Relaxed);
    }

    /// The child of a fork has a copy of the program's table: not of the governor's own.
    pub fn forget_in_child(&self) {
        if table::is_own() {
            self.fd.store(-1, Relaxed);
        }
        self.forget();
    }
}

pub fn close(fd: c_int) {
    // SAFETY: the callers pass descriptors that they opened.
    unsafe { libc::close(fd) };
}

fn inode(fd: c_int) -> Option<u64> {
    // SAFETY: an all-zero stat is a valid one to fill; fstat fails on a descriptor that is closed.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        (libc::fstat(fd, &mut stat) == 0).then_some(stat.st_ino)
    }
}
