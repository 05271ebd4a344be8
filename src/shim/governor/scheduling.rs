//! Undoes the scheduling that the governor inherits from the thread that started it: class, CPUs
//! and nice value.
//!
//! A seccomp filter that kills may forbid these calls (systemd's `~@resources`). Under such a
//! filter the governor keeps the values that it inherited.

use std::ffi::{c_int, c_long};

use flarena_sys::seccomp;

/// Linux supports up to 8192 CPUs.
const MASK_WORDS: usize = 128;

type Mask = [u64; MASK_WORDS];

/// Called after `descriptors::unshare`, as it opens files.
pub fn leave_the_starters() {
    // SAFETY: the name is NUL-terminated and shorter than 16 bytes.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"flarena".as_ptr()) };
    if !seccomp::allows_rare_calls() {
        return;
    }
    leave_real_time();
    take_the_process_cpus();
    take_the_process_nice();
}

/// Leaves the real-time classes, in which the governor would run before other threads. It keeps
/// the batch and idle classes, which a user chooses for the whole process.
fn leave_real_time() {
    // SAFETY: the parameter lives on this stack. 0 is the calling thread.
    unsafe {
        let class = libc::sched_getscheduler(0) & !libc::SCHED_RESET_ON_FORK;
        if ![libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_IDLE].contains(&class) {
            let mut none: libc::sched_param = std::mem::zeroed();
            none.sched_priority = 0;
            libc::sched_setscheduler(0, libc::SCHED_OTHER, &none);
        }
    }
}

/// Takes the CPUs of all threads together. A program that pins one thread does not mean the
/// governor; a user who confines the process confines all of its threads.
fn take_the_process_cpus() {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else {
        return;
    };
    let mut cpus: Mask = [0; MASK_WORDS];
    for thread in threads.flatten() {
        let id: Option<c_int> = thread.file_name().to_str().and_then(|id| id.parse().ok());
        let Some(thread_cpus) = id.and_then(cpus_of) else {
            continue;
        };
        for (word, thread_cpus) in cpus.iter_mut().zip(thread_cpus) {
            *word |= thread_cpus;
        }
    }
    // SAFETY: the mask has the length that is passed. 0 is the calling thread. The kernel refuses
    // an empty mask.
    unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, size_of::<Mask>(), &cpus) };
}

fn cpus_of(thread: c_int) -> Option<Mask> {
    let mut cpus: Mask = [0; MASK_WORDS];
    // SAFETY: the buffer has the length that is passed.
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

/// Takes the main thread's nice value: on Linux each thread has one. The kernel may refuse a lower
/// value than the present one.
fn take_the_process_nice() {
    // SAFETY: the calls take numbers alone: the id of the main thread, and 0 for this one.
    unsafe {
        *libc::__errno_location() = 0;
        let nice = libc::getpriority(libc::PRIO_PROCESS, libc::getpid() as libc::id_t);
        if nice != -1 || *libc::__errno_location() == 0 {
            libc::setpriority(libc::PRIO_PROCESS, 0, nice);
        }
    }
}
