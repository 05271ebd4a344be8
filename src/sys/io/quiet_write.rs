//! Writes that can fail but never send the program a signal.
//!
//! If the reader of stderr is gone, or the marker file reaches the file size limit, the kernel sends SIGPIPE
//! or SIGXFSZ. Both terminate the program by default. Pending signals, the signal mask and errno are preserved.

use crate::errno;
use std::ffi::c_int;
use std::ptr;

use rustix::fd::BorrowedFd;
use rustix::io::Errno;

/// One `write(2)`: the bytes written, or the error. Preserves errno and the thread's signals.
pub fn write(fd: c_int, bytes: &[u8]) -> Result<usize, c_int> {
    let _errno = errno::SavedErrno::save();
    with_signals_held(|| {
        // SAFETY: the borrow ends with this call, and a write to a number that is not open fails with EBADF.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        rustix::io::write(fd, bytes).map_err(Errno::raw_os_error)
    })
}

/// Blocks SIGPIPE and SIGXFSZ during `write`, and discards those that it raises. The kernel sends both to the
/// writing thread, so blocking them in this thread is enough.
fn with_signals_held(write: impl FnOnce() -> Result<usize, c_int>) -> Result<usize, c_int> {
    // SAFETY: all bits zero is a valid sigset_t and timespec, and all pointers are to live locals or null.
    unsafe {
        let mut ours: libc::sigset_t = std::mem::zeroed();
        let (mut mask, mut pending) = (ours, ours);
        libc::sigemptyset(&mut ours);
        libc::sigaddset(&mut ours, libc::SIGPIPE);
        libc::sigaddset(&mut ours, libc::SIGXFSZ);
        libc::pthread_sigmask(libc::SIG_BLOCK, &ours, &mut mask);
        libc::sigpending(&mut pending);
        let result = write();
        if let Err(libc::EPIPE | libc::EFBIG) = result {
            // A signal that was pending before belongs to the program and stays pending.
            for signal in [libc::SIGPIPE, libc::SIGXFSZ] {
                if libc::sigismember(&pending, signal) == 1 {
                    libc::sigdelset(&mut ours, signal);
                }
            }
            let now: libc::timespec = std::mem::zeroed();
            // libc's sigtimedwait is a cancellation point. The kernel's signal set has 8 bytes.
            libc::syscall(
                libc::SYS_rt_sigtimedwait,
                &raw const ours,
                ptr::null_mut::<libc::siginfo_t>(),
                &raw const now,
                8usize,
            );
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &mask, ptr::null_mut());
        result
    }
}

/// Removes the `bytes` that a failed write has appended to the file. If the file has grown since then, appends a
/// newline instead, so that the next line is separate. The check and the truncation are two calls.
pub fn take_back(raw: c_int, bytes: usize) {
    let _errno = errno::SavedErrno::save();
    // SAFETY: the borrow ends with this call, and these calls fail with EBADF on a number that is not open.
    let fd = unsafe { BorrowedFd::borrow_raw(raw) };
    let end = rustix::fs::seek(fd, rustix::fs::SeekFrom::Current(0)).ok();
    let size = rustix::fs::fstat(fd)
        .ok()
        .map(|stat| stat.st_size.unsigned_abs());
    if end.is_some() && end == size {
        let before = end.unwrap_or_default().saturating_sub(bytes as u64);
        let _ = rustix::fs::ftruncate(fd, before);
    } else {
        let _ = write(raw, b"\n");
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::OFlags;

    use super::*;
    use crate::io::file::File;

    fn appended(path: &std::ffi::CStr) -> File {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
        File::open(path, flags).unwrap()
    }

    #[test]
    fn a_partial_line_is_removed_only_at_the_end_of_the_file() {
        let path = std::env::temp_dir().join(format!("flarena-take-back-{}", std::process::id()));
        let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        let (torn, other) = (appended(&name), appended(&name));
        let write = |file: &File, text: &str| {
            super::write(file.as_raw(), text.as_bytes()).unwrap();
        };
        write(&other, "whole\n");
        write(&torn, "tor");
        take_back(torn.as_raw(), 3);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "whole\n");
        write(&torn, "tor");
        write(&other, "next\n");
        take_back(torn.as_raw(), 3);
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "whole\ntornext\n\n"
        );
        std::fs::remove_file(&path).unwrap();
    }
}
