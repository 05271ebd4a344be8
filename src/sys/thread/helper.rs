//! The library's one helper thread, and how a fork waits for it.
//!
//! Invariant: between a successful `quiesce` and `resume` the helper thread is not inside `run_work`,
//! or it sleeps there for a lock that the caller of `quiesce` holds. So it changes no memory and
//! releases no lock during a fork. All that may allocate or take a lock runs inside `run_work`.
//!
//! The thread calls `register`, `run_work` and `end_work`. A thread that forks calls the others.

use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU8, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

use crate::thread::sleep_1ms;
use crate::{proc::procfs, seccomp};

static EXISTS: AtomicBool = AtomicBool::new(false);
/// The thread's id; 0 until it has registered.
static ID: AtomicU32 = AtomicU32::new(0);

/// Bits of `STATE`.
const WORKING: u8 = 1;
const QUIESCED: u8 = 2;
static STATE: AtomicU8 = AtomicU8::new(0);

/// True if the process has a helper thread besides the program's threads.
pub fn exists() -> bool {
    EXISTS.load(Relaxed)
}

pub fn set_exists(exists: bool) {
    EXISTS.store(exists, Relaxed);
}

/// True if the calling thread is the program's only one; the helper thread does not count. False if
/// the kernel cannot be asked.
pub fn program_has_one_thread() -> bool {
    let threads = seccomp::allows_common_calls()
        .then(procfs::threads)
        .flatten();
    threads.is_some_and(|count| count <= 1 + u64::from(exists()))
}

/// The helper thread calls it first.
pub fn register() {
    ID.store(thread_id(), Relaxed);
}

/// True in the helper thread.
pub fn is_current() -> bool {
    thread_id() == ID.load(Relaxed)
}

fn thread_id() -> u32 {
    let id = rustix::thread::gettid().as_raw_nonzero().get();
    id.unsigned_abs()
}

/// True once the thread has run and the kernel has removed it.
pub fn has_ended() -> bool {
    let id = ID.load(Relaxed);
    // SAFETY: signal 0 is not delivered; the call only tests whether the thread exists.
    id != 0 && unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), id, 0) } != 0
}

/// Runs a piece of the helper thread's work. Waits first while the thread is quiesced.
pub fn run_work<R>(work: impl FnOnce() -> R) -> R {
    begin_work();
    let result = work();
    end_work();
    result
}

/// Runs a wait of the helper thread in the middle of its work. The work counts as ended during the
/// wait, so that a fork need not wait, too. The caller holds no lock. In other threads only waits.
pub fn wait_outside_work<R>(wait: impl FnOnce() -> R) -> R {
    if !is_current() {
        return wait();
    }
    end_work();
    let result = wait();
    begin_work();
    result
}

fn begin_work() {
    while STATE
        .compare_exchange(0, WORKING, Acquire, Relaxed)
        .is_err()
    {
        sleep_1ms();
    }
}

/// Ends a piece of work that will not return.
pub fn end_work() {
    STATE.fetch_and(!WORKING, Release);
}

/// Prevents the next piece of work until `resume`, and waits for the end of the current one. False if
/// that takes too long.
///
/// Work that sleeps all the time waits for a lock that the caller holds. It counts as ended: the
/// caller is a signal handler, and the interrupted code does not go on before the handler returns.
pub fn quiesce() -> bool {
    const SLEEPING_CHECKS: u32 = 200;
    const MAX_CHECKS: u32 = 10_000;
    STATE.fetch_or(QUIESCED, Acquire);
    let mut sleeping = 0;
    for _ in 0..MAX_CHECKS {
        if STATE.load(Acquire) & WORKING == 0 {
            return true;
        }
        sleep_1ms();
        let is_asleep = procfs::is_asleep(ID.load(Relaxed));
        sleeping = if is_asleep { sleeping + 1 } else { 0 };
        if sleeping == SLEEPING_CHECKS {
            return true;
        }
    }
    false
}

pub fn resume() {
    STATE.fetch_and(!QUIESCED, Release);
}

/// The child of a fork has no helper thread.
pub fn after_fork_in_child() {
    STATE.store(0, Relaxed);
    ID.store(0, Relaxed);
    set_exists(false);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_work_runs_between_quiesce_and_resume() {
        static DONE: AtomicBool = AtomicBool::new(false);
        assert!(quiesce());
        std::thread::scope(|scope| {
            scope.spawn(|| run_work(|| DONE.store(true, Relaxed)));
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!DONE.load(Relaxed));
            resume();
        });
        assert!(DONE.load(Relaxed));
    }
}
