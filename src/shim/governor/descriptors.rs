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

/// In the own table 0 and 1 are an epoll instance, so that no file of the governor gets a number to
/// which code writes its output.
const PLACEHOLDER: c_int = 0;

static HAS_OWN_TABLE: AtomicBool = AtomicBool::new(false);

/// Only with its own table may the governor keep a descriptor open. Without, it has neither a
/// control channel nor a pressure trigger, and closes each file right after it has read it.
pub fn has_own_table() -> bool {
    HAS_OWN_TABLE.load(Relaxed)
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

/// Closes more numbers than the governor ever has open.
fn close_lowest() {
    for fd in libc::STDERR_FILENO + 1..64 {
        // SAFETY: only this thread uses the table, and it uses none of these numbers again.
        unsafe { libc::close(fd) };
    }
}

/// Replaces a stderr that the program has closed or replaced by the program's current one.
pub fn follow_stderr() {
    if !has_own_table() || is_stderr_current() {
        return;
    }
    // SAFETY: only this thread uses the table. It owns the two descriptors that it closes.
    unsafe {
        libc::dup3(PLACEHOLDER, libc::STDERR_FILENO, libc::O_CLOEXEC);
        if !seccomp::allows_rare_calls() {
            return;
        }
        let process = libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0) as c_int;
        if process < 0 {
            return;
        }
        let stderr = libc::syscall(libc::SYS_pidfd_getfd, process, libc::STDERR_FILENO, 0) as c_int;
        if stderr >= 0 {
            libc::dup3(stderr, libc::STDERR_FILENO, libc::O_CLOEXEC);
            libc::close(stderr);
        }
        libc::close(process);
    }
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
    const CLOSE_RANGE_UNSHARE: u32 = 1 << 1;
    // SAFETY: the call closes numbers in a copy that it makes for this thread. It makes none if no
    // thread shares the table, and then the program has no thread left.
    let error = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            libc::STDERR_FILENO + 1,
            u32::MAX,
            CLOSE_RANGE_UNSHARE,
        )
    };
    error == 0
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
    // In a full table the list could not be opened.
    close_lowest();
    let number = |entry: std::io::Result<std::fs::DirEntry>| -> Option<c_int> {
        entry.ok()?.file_name().to_str()?.parse().ok()
    };
    let open: Vec<c_int> = std::fs::read_dir("/proc/thread-self/fd")
        .map(|entries| entries.filter_map(number).collect())
        .unwrap_or_default();
    for fd in open {
        if fd > libc::STDERR_FILENO {
            // SAFETY: a copy of a program's descriptor in this thread's own table, or the number of
            // the list, which is closed.
            unsafe { libc::close(fd) };
        }
    }
    true
}
