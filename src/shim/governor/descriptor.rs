//! A descriptor of the governor's in a process that knows nothing of it.
//!
//! Programs close descriptors by number and reuse the numbers. So ours lie above those that
//! programs number by hand, and before each use the inode must still be the one that we opened.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

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
        (fd >= 0 && inode(fd) == Some(self.inode.load(Relaxed))).then_some(fd)
    }

    /// Closes it, unless the number is somebody else's by now.
    pub fn forget(&self) {
        if let Some(fd) = self.get() {
            close(fd);
        }
        self.fd.store(-1, Relaxed);
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
