//! A write that may fail but never kills. The reader of stderr may be gone, the marker file may
//! reach the limit on file sizes: the kernel then sends SIGPIPE or SIGXFSZ, whose default is death,
//! to a program that did nothing.

use crate::errno;
use std::ffi::c_int;
use std::ptr;

use rustix::fd::BorrowedFd;
use rustix::io::Errno;

/// One `write(2)`: the bytes written, or the error. Leaves errno and the thread's signals as they were.
pub fn write(fd: c_int, bytes: &[u8]) -> Result<usize, c_int> {
    let _errno = errno::SavedErrno::save();
    with_signals_held(|| {
        // SAFETY: write fails on a number that is not open; whose it is, the caller knows.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        rustix::io::write(fd, bytes).map_err(Errno::raw_os_error)
    })
}

/// Both signals go to the thread that wrote, so holding them here holds them off altogether.
fn with_signals_held(write: impl FnOnce() -> Result<usize, c_int>) -> Result<usize, c_int> {
    // SAFETY: an all-zero sigset_t is storage for the calls to fill; all pointers are to locals;
    // the mask is restored to what it was.
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
            // One that was pending before is the program's own: it stays.
            for signal in [libc::SIGPIPE, libc::SIGXFSZ] {
                if libc::sigismember(&pending, signal) == 1 {
                    libc::sigdelset(&mut ours, signal);
                }
            }
            let now: libc::timespec = std::mem::zeroed();
            // libc's function of this name is a cancellation point. The kernel's set has 8 bytes.
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

/// Takes the end of a line back that this descriptor has just appended, unless somebody wrote behind it: then
/// the piece gets an end, so that the next line stands alone.
pub fn take_back(raw: c_int, bytes: usize) {
    let _errno = errno::SavedErrno::save();
    // SAFETY: these calls fail on a number that is not open; whose it is, the caller knows.
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
    fn only_the_last_line_of_a_file_is_taken_back() {
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
