//! A descriptor that malloc may use: opened, read, written and closed by the kernel's own calls.
//! libc's are cancellation points, which malloc and free may not be; std closes by libc's.

use std::ffi::{c_int, CStr};

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, Result};

/// An open file, closed when dropped. Leaves errno alone.
pub struct File(Option<OwnedFd>);

impl File {
    /// Closed at exec in any case; a file that is made belongs to its user alone.
    pub fn open(path: &CStr, flags: OFlags) -> Result<File> {
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::open(path, flags | OFlags::CLOEXEC, mode).map(|fd| File(Some(fd)))
    }

    /// Reads once; 0 at the end.
    pub fn read(&self, buffer: &mut [u8]) -> Result<usize> {
        let fd = self.as_fd().ok_or(Errno::BADF)?;
        loop {
            match rustix::io::read(fd, &mut *buffer) {
                Err(Errno::INTR) => {}
                result => return result,
            }
        }
    }

    /// Reads once from this offset on; 0 at the end.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let fd = self.as_fd().ok_or(Errno::BADF)?;
        loop {
            match rustix::io::pread(fd, &mut *buffer, offset) {
                Err(Errno::INTR) => {}
                result => return result,
            }
        }
    }

    /// The number, for as long as the file lives; -1 for none.
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
            // SAFETY: the descriptor was this file's alone, and is given up here.
            unsafe { rustix::io::close(fd.into_raw_fd()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_from_its_beginning() {
        let file = File::open(c"/proc/self/stat", OFlags::RDONLY).unwrap();
        let mut buffer = [0; 8];
        assert!(file.read(&mut buffer).unwrap() > 0);
        let pid = std::process::id().to_string();
        assert!(buffer.starts_with(&pid.as_bytes()[..pid.len().min(8)]));
    }
}
