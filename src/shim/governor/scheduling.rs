//! Undoes the scheduling that the governor inherits from the thread that started it: class, CPUs
//! and nice value.
//!
//! A seccomp filter that kills may forbid these calls (systemd's `~@resources`). Under such a
//! filter the governor keeps the values that it inherited.

use super::descriptors;
use flarena_sys::seccomp;
use rustix::process::{self, Pid};
use rustix::thread::{self, sched_getaffinity, sched_setaffinity, CpuSet};

/// Called after `descriptors::unshare`, as it opens files.
pub fn leave_the_starters() {
    let _ = thread::set_name(c"flarena");
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
/// governor; a user who confines the process confines all of its threads. With more than 1024 possible
/// CPUs the kernel refuses the set, and the governor stays where it was started.
fn take_the_process_cpus() {
    let mut cpus = CpuSet::new();
    let threads = descriptors::numbers_in("/proc/self/task");
    for thread in threads.into_iter().filter_map(Pid::from_raw) {
        if let Ok(set) = sched_getaffinity(Some(thread)) {
            (0..CpuSet::MAX_CPU)
                .filter(|&cpu| set.is_set(cpu))
                .for_each(|cpu| cpus.set(cpu));
        }
    }
    // The kernel refuses an empty set.
    let _ = sched_setaffinity(None, &cpus);
}

/// Takes the main thread's nice value: on Linux each thread has one. The kernel may refuse a lower
/// value than the present one.
fn take_the_process_nice() {
    if let Ok(nice) = process::getpriority_process(Some(process::getpid())) {
        let _ = process::setpriority_process(None, nice);
    }
}
