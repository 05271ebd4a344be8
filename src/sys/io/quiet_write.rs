//! Writes that can fail but never send the program a signal.
//!
//! If the reader of stderr is gone, or the marker file reaches the file size limit, the kernel sends SIGPIPE
//! or SIGXFSZ. Both terminate the program by default. Pending signals, the signal mask and errno are preserved.

use crate::errno;
use std::ffi::c_int;
use std::fmt;
use std::io::Write;
use std::ptr;

use rustix::fd::BorrowedFd;
use rustix::fs::OFlags;
use rustix::io::Errno;

/// Formats a line in the buffer, with its newline. Text that does not fit is cut. Neither allocates nor panics, except for an
/// empty buffer.
pub fn line<'b>(buffer: &'b mut [u8], text: fmt::Arguments<'_>) -> &'b [u8] {
    let room = buffer.len() - 1;
    let mut rest = &mut buffer[..room];
    // A failure is that of the text which is cut.
    let _ = rest.write_fmt(text);
    let len = room - rest.len();
    buffer[len] = b'\n';
    &buffer[..=len]
}

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

/// Overwrites the `bytes` that an incomplete write has appended to the file with spaces and a newline. The range
/// belongs to this write alone, so a line that another process appends meanwhile stays whole. A truncation could cut
/// that line off.
pub fn blank_out(raw: c_int, bytes: usize) {
    const SPACES: [u8; 256] = [b' '; 256];
    let _errno = errno::SavedErrno::save();
    // SAFETY: the borrow ends with this call, and these calls fail with EBADF on a number that is not open.
    let fd = unsafe { BorrowedFd::borrow_raw(raw) };
    // The position is the end of the appended bytes.
    let Ok(end) = rustix::fs::seek(fd, rustix::fs::SeekFrom::Current(0)) else {
        return;
    };
    // With O_APPEND, pwrite appends, too.
    if rustix::fs::fcntl_setfl(fd, OFlags::WRONLY).is_err() {
        return;
    }
    let newline = end.saturating_sub(1);
    let mut at = end.saturating_sub(bytes as u64);
    while at < newline {
        let len = SPACES.len().min((newline - at) as usize);
        match rustix::io::pwrite(fd, &SPACES[..len], at) {
            Ok(written) if written > 0 => at += written as u64,
            _ => return,
        }
    }
    let _ = rustix::io::pwrite(fd, b"\n", newline);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::file::File;

    fn appended(path: &std::ffi::CStr) -> File {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
        File::open(path, flags).unwrap()
    }

    #[test]
    fn line_that_is_too_long_is_cut_and_ends_in_newline() {
        let mut buffer = [0; 1024];
        let cut = line(&mut buffer, format_args!("{}", "y".repeat(5000)));
        assert_eq!((cut.len(), cut.last()), (1024, Some(&b'\n')));
        assert_eq!(line(&mut buffer, format_args!("a {}", 1)), b"a 1\n");
    }

    #[test]
    fn line_that_another_process_appends_to_a_partial_line_stays_whole() {
        let path = std::env::temp_dir().join(format!("flarena-blank-out-{}", std::process::id()));
        let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        let other = appended(&name);
        let write = |file: &File, text: &str| {
            super::write(file.as_raw(), text.as_bytes()).unwrap();
        };
        write(&other, "whole\n");
        for partial in ["t", "torn", &"torn".repeat(100)] {
            let torn = appended(&name);
            write(&torn, partial);
            write(&other, "next\n");
            blank_out(torn.as_raw(), partial.len());
        }
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert_eq!(lines, ["whole", "", "next", "", "next", "", "next"]);
        assert_eq!(text.len(), 6 + 3 * 5 + 1 + 4 + 400);
    }
}
