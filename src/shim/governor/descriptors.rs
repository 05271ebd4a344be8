//! The governor's own descriptor table.
//!
//! In the program's table, each file that the governor opens would take the lowest free number for
//! a moment, and a number that the program closed and reused could be closed under it. So the
//! thread leaves that table before it opens a file. Then neither side, nor a child of the program,
//! has a descriptor of the other.
//!
//! One copy remains: stderr, for markers and for the message of an allocator that aborts. Only the
//! governor's thread comes here.

use std::ffi::{c_int, CStr};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use flarena_sys::seccomp;
use rustix::fd::AsRawFd;
use rustix::process::{getpid, pidfd_getfd, pidfd_open, PidfdFlags, PidfdGetfdFlags};

/// In the own table 0 and 1 are an epoll instance, so that no file of the governor gets a number to
/// which code writes its output.
const PLACEHOLDER: c_int = 0;
/// The first number that the governor does not take over from the program.
const FIRST_COPY: c_int = libc::STDERR_FILENO + 1;

static HAS_OWN_TABLE: AtomicBool = AtomicBool::new(false);

/// Opens a descriptor to keep. Only with its own table may the governor keep one. Without, it has neither a
/// control channel nor a pressure trigger, and closes each file right after it has read it.
pub fn keep_open<T>(open: impl FnOnce() -> Option<T>) -> Option<T> {
    HAS_OWN_TABLE.load(Relaxed).then(open)?
}

/// Leaves the program's table, if the system permits. Called before the governor opens a file.
pub fn unshare() {
    let is_unshared = unshare_by_close_range() || unshare_and_close_each();
    HAS_OWN_TABLE.store(is_unshared, Relaxed);
    if !is_unshared {
        return;
    }
    // SAFETY: only this thread uses the table, and no value owns these numbers.
    unsafe {
        libc::close(PLACEHOLDER);
        libc::close(libc::STDOUT_FILENO);
        // The lowest free number is 0.
        if libc::epoll_create1(libc::EPOLL_CLOEXEC) == PLACEHOLDER {
            libc::dup3(PLACEHOLDER, libc::STDOUT_FILENO, libc::O_CLOEXEC);
            if libc::fcntl(libc::STDERR_FILENO, libc::F_GETFD) < 0 {
                libc::dup3(PLACEHOLDER, libc::STDERR_FILENO, libc::O_CLOEXEC);
            }
        }
    }
}

/// Replaces a stderr that the program has closed or replaced by the program's current one.
pub fn follow_stderr() {
    if !HAS_OWN_TABLE.load(Relaxed) || is_stderr_current() {
        return;
    }
    replace_stderr(PLACEHOLDER);
    if seccomp::allows_rare_calls() {
        let process = pidfd_open(getpid(), PidfdFlags::empty());
        let stderr = process.and_then(|process| {
            pidfd_getfd(process, libc::STDERR_FILENO, PidfdGetfdFlags::empty())
        });
        if let Ok(stderr) = stderr {
            replace_stderr(stderr.as_raw_fd());
        }
    }
}

fn replace_stderr(fd: c_int) {
    // SAFETY: only this thread uses the table, and no value owns the number.
    unsafe { libc::dup3(fd, libc::STDERR_FILENO, libc::O_CLOEXEC) };
}

/// Compares the targets of both descriptors 2. Also true if the program has none and the governor
/// has the placeholder.
fn is_stderr_current() -> bool {
    let (mut programs, mut own, mut placeholder) = ([0; 256], [0; 256], [0; 256]);
    let own = target_of(c"/proc/thread-self/fd/2", &mut own);
    match target_of(c"/proc/self/fd/2", &mut programs) {
        Some(programs) => own == Some(programs),
        None => own.is_none() || own == target_of(c"/proc/thread-self/fd/0", &mut placeholder),
    }
}

/// The text of a link. Unlike `fstat` it needs no answer of the file system, which may hang.
fn target_of<'b>(link: &CStr, buffer: &'b mut [u8; 256]) -> Option<&'b [u8]> {
    // SAFETY: the path is NUL-terminated, and the buffer has the length that is passed.
    let len = unsafe { libc::readlink(link.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len()) };
    buffer.get(..usize::try_from(len).ok()?)
}

/// Copies the table and closes the copied descriptors in one call. So the program's pipes have a
/// second owner for no longer than the call.
fn unshare_by_close_range() -> bool {
    const UNSHARE: u32 = 1 << 1;
    // SAFETY: the call closes numbers in a copy that it makes for this thread. It makes none if no
    // thread shares the table, and then the program has no thread left.
    unsafe { libc::syscall(libc::SYS_close_range, FIRST_COPY, u32::MAX, UNSHARE) == 0 }
}

/// For kernels before 5.9: copies the table, and closes the copied descriptors one by one.
fn unshare_and_close_each() -> bool {
    // Without the list of descriptors, the copies of the program's pipes would stay open for ever.
    if target_of(c"/proc/thread-self", &mut [0; 256]).is_none() {
        return false;
    }
    // SAFETY: the call takes a number alone. Not by name: the exported `unshare` ends the governor.
    if unsafe { libc::syscall(libc::SYS_unshare, libc::CLONE_FILES) } != 0 {
        return false;
    }
    let close = |fd: c_int| {
        if fd >= FIRST_COPY {
            // SAFETY: only this thread uses the table, and no value owns a number from here on.
            unsafe { libc::close(fd) };
        }
    };
    // More numbers than the governor ever has open: in a full table the list could not be opened.
    (FIRST_COPY..64).for_each(close);
    numbers_in("/proc/thread-self/fd")
        .into_iter()
        .for_each(close);
    true
}

/// The entries of a folder of `/proc` that are numbers.
pub fn numbers_in(folder: &str) -> Vec<c_int> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}
