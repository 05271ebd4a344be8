//! What the thread must not inherit from whoever happened to start it: its scheduling class, its CPU, its
//! priority. Signals are blocked before it starts, in `launch`. Lists that kill may leave these calls out (systemd's
//! `~@resources`): behind one it stays as it was started.

use std::ffi::{c_int, c_long};

use flarena_sys::seccomp;

/// Room for 8192 CPUs, the most that Linux is built for.
const MASK_WORDS: usize = 128;

type Mask = [u64; MASK_WORDS];

/// Called by the governor's thread, once it has left the program's table of descriptors, where the system lets it.
pub fn settle() {
    // SAFETY: the name is NUL-terminated and shorter than 16 bytes.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"flarena".as_ptr()) };
    if seccomp::may_kill() {
        return;
    }
    leave_real_time();
    take_the_process_cpus();
    take_the_process_nice();
}

/// A thread that gives memory back has no deadline: started by a thread that has one, it would run before
/// everybody else. Batch and idle classes are the user's wish for the whole process, and stay.
fn leave_real_time() {
    // SAFETY: plain numbers and a parameter that lives on this stack; 0 is the calling thread.
    unsafe {
        let class = libc::sched_getscheduler(0) & !libc::SCHED_RESET_ON_FORK;
        if ![libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_IDLE].contains(&class) {
            let mut none: libc::sched_param = std::mem::zeroed();
            none.sched_priority = 0;
            libc::sched_setscheduler(0, libc::SCHED_OTHER, &none);
        }
    }
}

/// The CPUs of all threads together: whoever pinned one did not mean us, and whoever confined the process
/// confined every one.
fn take_the_process_cpus() {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else {
        return;
    };
    let mut cpus: Mask = [0; MASK_WORDS];
    for thread in threads.flatten() {
        let id: Option<c_int> = thread.file_name().to_str().and_then(|id| id.parse().ok());
        let Some(theirs) = id.and_then(cpus_of) else {
            continue;
        };
        for (word, theirs) in cpus.iter_mut().zip(theirs) {
            *word |= theirs;
        }
    }
    // SAFETY: the mask has the length that is said; 0 is the calling thread. An empty mask is refused.
    unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, size_of::<Mask>(), &cpus) };
}

fn cpus_of(thread: c_int) -> Option<Mask> {
    let mut cpus: Mask = [0; MASK_WORDS];
    // SAFETY: the buffer has the length that is said.
    let written: c_long = unsafe {
        libc::syscall(
            libc::SYS_sched_getaffinity,
            thread,
            size_of::<Mask>(),
            &raw mut cpus,
        )
    };
    (written > 0).then_some(cpus)
}

/// That of the main thread, as nice is a thread's own on Linux. To become less nice than the starter may be
/// refused: then it stays.
fn take_the_process_nice() {
    // SAFETY: plain numbers: the ids of the main thread and, as 0, of this one.
    unsafe {
        *libc::__errno_location() = 0;
        let nice = libc::getpriority(libc::PRIO_PROCESS, libc::getpid() as libc::id_t);
        if nice != -1 || *libc::__errno_location() == 0 {
            libc::setpriority(libc::PRIO_PROCESS, 0, nice);
        }
    }
}

/// Ends a process all of whose other threads are gone, as it would have ended without us: by the end of the
/// last thread, with the status of the main one, and nothing run.
pub fn exit_process() {
    // SAFETY: this ends the calling thread; nobody waits for anything that it holds.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
}
