//! Undoes the scheduling that the governor inherits from the thread that started it: class, CPUs
//! and nice value.
//!
//! A seccomp filter that kills may forbid these calls (systemd's `~@resources`). Under such a
//! filter the governor keeps the values that it inherited.

use std::ffi::{c_int, c_long};

use super::descriptors;
use flarena_sys::seccomp;
use rustix::process;

/// Linux supports up to 8192 CPUs.
const MASK_WORDS: usize = 128;

type Mask = [u64; MASK_WORDS];

/// Called after `descriptors::unshare`, as it opens files.
pub fn leave_the_starters() {
    let _ = rustix::thread::set_name(c"flarena");
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
            let none: libc::sched_param = std::mem::zeroed();
            libc::sched_setscheduler(0, libc::SCHED_OTHER, &none);
        }
    }
}

/// Takes the CPUs of all threads together. A program that pins one thread does not mean the
/// governor; a user who confines the process confines all of its threads.
fn take_the_process_cpus() {
    let mut cpus: Mask = [0; MASK_WORDS];
    let threads = descriptors::numbers_in("/proc/self/task");
    for thread_cpus in threads.into_iter().filter_map(cpus_of) {
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
    if let Ok(nice) = process::getpriority_process(Some(process::getpid())) {
        let _ = process::setpriority_process(None, nice);
    }
}
