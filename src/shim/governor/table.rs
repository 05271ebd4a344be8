//! A table of descriptors of the governor's own.
//!
//! In the program's table each file that the governor opens takes the lowest number for a moment, where the
//! program may count on getting it; and a number that the program closed and took again could be closed under
//! it. So the thread leaves that table before it opens anything. What the program opens, closes or hands to its
//! children is then none of its business, and the other way round.
//!
//! Of the program's descriptors it keeps a copy of stderr, where markers and an allocator's last words go,
//! until it sees that the program has another one or none. Where the system allows no table of one's own,
//! `descriptor` takes care.

use std::ffi::{c_int, CStr};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use flarena_sys::seccomp;

/// Nobody's: 0 and 1 in the own table stand for it, so that no file of ours becomes anybody's output.
const NOWHERE: c_int = 0;

static OWN: AtomicBool = AtomicBool::new(false);

/// True while the governor's descriptors are numbers in its own table.
pub fn is_own() -> bool {
    OWN.load(Relaxed)
}

/// A forked child has the program's table and no governor.
pub fn after_fork_in_child() {
    OWN.store(false, Relaxed);
}

/// Called by the governor's thread, before it opens anything.
pub fn leave_the_programs() {
    if !(unshare_by_close_range() || unshare_by_hand()) {
        return;
    }
    OWN.store(true, Relaxed);
    // SAFETY: the numbers are this thread's alone by now.
    unsafe {
        libc::close(NOWHERE);
        libc::close(libc::STDOUT_FILENO);
        // It gets the lowest number.
        if libc::epoll_create1(libc::EPOLL_CLOEXEC) == NOWHERE {
            libc::dup3(NOWHERE, libc::STDOUT_FILENO, libc::O_CLOEXEC);
            if libc::fcntl(libc::STDERR_FILENO, libc::F_GETFD) < 0 {
                libc::dup3(NOWHERE, libc::STDERR_FILENO, libc::O_CLOEXEC);
            }
        }
    }
}

/// Lets go of a stderr that is no longer the program's, and takes the program's where the system lets it.
pub fn follow_stderr() {
    if !is_own() || is_stderr_the_programs() {
        return;
    }
    // SAFETY: plain numbers; what the calls give is closed here.
    unsafe {
        libc::dup3(NOWHERE, libc::STDERR_FILENO, libc::O_CLOEXEC);
        if seccomp::may_kill() {
            return;
        }
        let process = libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0) as c_int;
        if process < 0 {
            return;
        }
        let theirs = libc::syscall(libc::SYS_pidfd_getfd, process, libc::STDERR_FILENO, 0) as c_int;
        if theirs >= 0 {
            libc::dup3(theirs, libc::STDERR_FILENO, libc::O_CLOEXEC);
            libc::close(theirs);
        }
        libc::close(process);
    }
}

/// Compares what our number 2 and the program's lead to. True, too, while both lead nowhere.
fn is_stderr_the_programs() -> bool {
    let (mut theirs, mut ours, mut nowhere) = ([0; 256], [0; 256], [0; 256]);
    let ours = target_of(c"/proc/thread-self/fd/2", &mut ours);
    match target_of(c"/proc/self/fd/2", &mut theirs) {
        Some(theirs) => ours == Some(theirs),
        None => ours.is_none() || ours == target_of(c"/proc/thread-self/fd/0", &mut nowhere),
    }
}

/// The text of a link, which asks no file system: one that hangs must not hold the governor.
fn target_of<'b>(link: &CStr, buffer: &'b mut [u8; 256]) -> Option<&'b [u8]> {
    // SAFETY: the path is NUL-terminated, and the buffer has the length that is said.
    let len = unsafe { libc::readlink(link.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len()) };
    buffer.get(..usize::try_from(len).ok()?)
}

/// One call that also leaves the program's descriptors behind: nearly no moment in which they have two owners.
fn unshare_by_close_range() -> bool {
    const CLOSE_RANGE_UNSHARE: u32 = 1 << 1;
    // SAFETY: it closes numbers of a copy that this call makes for this thread; where nobody shares the
    // table it makes none, and then nobody else has it.
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

/// Kernels before 5.9: a copy of the table, and everything in it closed, found by a list.
fn unshare_by_hand() -> bool {
    // Without the list the copies of the program's pipes would stay open for ever.
    if target_of(c"/proc/thread-self", &mut [0; 256]).is_none() {
        return false;
    }
    // SAFETY: plain numbers; from here on the table is this thread's alone.
    unsafe {
        if libc::unshare(libc::CLONE_FILES) != 0 {
            return false;
        }
        // In a full table the list could not be opened.
        for fd in libc::STDERR_FILENO + 1..64 {
            libc::close(fd);
        }
    }
    let listed = |entry: std::io::Result<std::fs::DirEntry>| -> Option<c_int> {
        entry.ok()?.file_name().to_str()?.parse().ok()
    };
    let open: Vec<c_int> = std::fs::read_dir("/proc/thread-self/fd")
        .map(|entries| entries.filter_map(listed).collect())
        .unwrap_or_default();
    for fd in open {
        if fd > libc::STDERR_FILENO {
            // SAFETY: a copy of the program's in this thread's own table, or the list, which is closed.
            unsafe { libc::close(fd) };
        }
    }
    true
}
