//! A file that malloc and free may use. It is opened, read and closed by direct system calls.
//! The libc functions, which std uses, are cancellation points; malloc and free must not contain one.

use std::ffi::{c_int, CStr, CString};

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::{Errno, Result};

/// An open file, closed on drop. Its methods preserve errno.
pub struct File(Option<OwnedFd>);

impl File {
    /// Always sets `O_CLOEXEC`. Only the owner can read and write a file that this call creates.
    pub fn open(path: &CStr, flags: OFlags) -> Result<File> {
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::open(path, flags | OFlags::CLOEXEC, mode).map(|fd| File(Some(fd)))
    }

    /// Reads once, and repeats only after EINTR; 0 at the end of the file.
    pub fn read(&self, buffer: &mut [u8]) -> Result<usize> {
        let fd = self.as_fd().ok_or(Errno::BADF)?;
        loop {
            match rustix::io::read(fd, &mut *buffer) {
                Err(Errno::INTR) => {}
                result => return result,
            }
        }
    }

    /// True if another user may have made the open file: see [`is_planted`].
    pub fn is_planted(&self, path: &CStr) -> bool {
        let file = self.as_fd().and_then(|fd| rustix::fs::fstat(fd).ok());
        file.is_some_and(|file| is_of_another_user(&file, path))
    }

    /// The descriptor number, valid until the file is dropped; -1 without a descriptor.
    pub fn as_raw(&self) -> c_int {
        self.as_fd().map_or(-1, |fd| fd.as_raw_fd())
    }

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.0.as_ref().map(AsFd::as_fd)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if let Some(fd) = self.0.take() {
            // SAFETY: this file owned the descriptor, and `into_raw_fd` has given up the ownership, so it is closed once.
            unsafe { rustix::io::close(fd.into_raw_fd()) };
        }
    }
}

/// The rule of the kernel's `fs.protected_regular`, which many systems leave off: in a sticky folder that all users can
/// write, such as /tmp, another user may have made the file before this process does. The folder's owner is trusted.
pub fn is_planted(path: &CStr) -> bool {
    let file = rustix::fs::statat(rustix::fs::CWD, path, AtFlags::SYMLINK_NOFOLLOW);
    file.is_ok_and(|file| is_of_another_user(&file, path))
}

fn is_of_another_user(file: &Stat, path: &CStr) -> bool {
    if file.st_uid == rustix::process::geteuid().as_raw() {
        return false;
    }
    let path = path.to_bytes();
    let folder = match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => &path[..=slash],
        None => b".",
    };
    let folder = CString::new(folder).unwrap_or_default();
    let shared = Mode::SVTX | Mode::WOTH;
    rustix::fs::stat(folder.as_c_str()).is_ok_and(|folder| {
        Mode::from_raw_mode(folder.st_mode).contains(shared) && folder.st_uid != file.st_uid
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_read_starts_at_the_beginning() {
        let file = File::open(c"/proc/self/stat", OFlags::RDONLY).unwrap();
        let mut buffer = [0; 8];
        assert!(file.read(&mut buffer).unwrap() > 0);
        let pid = std::process::id().to_string();
        assert!(buffer.starts_with(&pid.as_bytes()[..pid.len().min(8)]));
    }
}
