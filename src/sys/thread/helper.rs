//! The library's one helper thread, and how the program's threads wait for it.
//!
//! Invariant: between a successful `quiesce` and `resume` the helper thread is not inside `run_work`,
//! or it sleeps there for a lock that the caller of `quiesce` holds. So during a fork it changes no
//! memory and holds no lock of the library, of libc or of the loader, and during a `dlclose` it runs no
//! code of other libraries. All such work runs inside `run_work`.
//!
//! The thread calls `register`, `run_work` and `wait_outside_work`. Threads of the program call the
//! others. docs/design/waits.md lists what ends each wait.

use std::sync::atomic::{
    AtomicBool, AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

use rustix::process::Pid;

use crate::thread::sleep_1ms;
use crate::{attention, proc::procfs, seccomp};

static EXISTS: AtomicBool = AtomicBool::new(false);
/// The thread's id; 0 until it has registered.
static ID: AtomicU32 = AtomicU32::new(0);

/// A bit of `STATE`: a piece of work runs.
const WORKING: u32 = 1;
/// `STATE` contains this once for each thread between `quiesce` and `resume`.
const QUIESCED: u32 = 2;
static STATE: AtomicU32 = AtomicU32::new(0);

/// How long a thread of the program waits. The thread checks once a millisecond.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// One check.
    None,
    /// The caller can go on beside the helper thread: 100 checks.
    Short,
    /// The caller's next step would fail beside it: until its piece of work ends, 10,000 checks at most.
    Long,
}

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
    threads.is_some_and(|count| count <= 1 + u64::from(exists() && !attention::is_copy()))
}

/// The helper thread calls it first.
pub fn register() {
    ID.store(thread_id(), Relaxed);
}

/// Before another thread may be created: forgets the one that has ended. True in one caller only. Not for a vfork
/// child, whose process the thread does not belong to.
pub fn forget_ended() -> bool {
    let id = ID.load(Relaxed);
    has_ended(id) && ID.compare_exchange(id, 0, Relaxed, Relaxed).is_ok()
}

/// `None` until the thread has registered.
pub fn id() -> Option<Pid> {
    Pid::from_raw(ID.load(Relaxed).cast_signed())
}

/// True in the helper thread.
pub fn is_current() -> bool {
    thread_id() == ID.load(Relaxed)
}

fn thread_id() -> u32 {
    let id = rustix::thread::gettid().as_raw_nonzero().get();
    id.unsigned_abs()
}

/// True once the thread with this id has run and the kernel has removed it.
fn has_ended(id: u32) -> bool {
    // SAFETY: signal 0 is not delivered; the call only tests whether the thread exists.
    id != 0 && unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), id, 0) } != 0
}

/// True if the process has the calling thread and the helper thread alone.
pub fn is_the_only_other_thread() -> bool {
    // It exists before and after the count, so it is counted.
    let exists = |id| id != 0 && !has_ended(id);
    let id = ID.load(Relaxed);
    exists(id) && procfs::threads() == Some(2) && ID.load(Relaxed) == id && exists(id)
}

/// Waits until the thread has ended. False if that takes too long, or if the thread waits for a lock
/// that the caller holds.
pub fn await_end(patience: Patience) -> bool {
    // In a signal handler the interrupted code may be the one that creates the thread.
    let has_ended = || match ID.load(Relaxed) {
        0 => procfs::threads() == Some(1),
        id => has_ended(id),
    };
    wait_until(has_ended, patience) == Waited::Done
}

/// Ends a process whose other threads have all ended. Without the helper thread the end of the last
/// thread would have ended it, with the main thread's status and without exit handlers. A main thread that ended by a raw
/// system call has run no destructor that ends the helper thread.
pub fn exit_if_alone() {
    if procfs::has_only_this_thread_left() {
        // SAFETY: the call ends this thread. No other thread is left to need what it holds.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    }
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
    const CHECKS_PER_EXIT_CHECK: u32 = 1_000;
    let mut checks = 0_u32;
    while STATE
        .compare_exchange(0, WORKING, Acquire, Relaxed)
        .is_err()
    {
        sleep_1ms();
        checks += 1;
        // A thread that the kernel ends inside fork never calls `resume`.
        if checks.is_multiple_of(CHECKS_PER_EXIT_CHECK) {
            exit_if_alone();
        }
    }
}

/// Ends a piece of work that will not return.
pub fn end_work() {
    STATE.fetch_and(!WORKING, Release);
}

/// Prevents the next piece of work until `resume`, and waits for the end of the current one. False if
/// that takes too long. Calls may nest, and several threads may call it.
///
/// Work that sleeps all the time waits for a lock that the caller holds. It counts as ended: the
/// interrupted code of a signal handler does not go on before the handler returns, and a thread that
/// waits for a lock has not yet read what the lock protects.
pub fn quiesce() -> bool {
    STATE.fetch_add(QUIESCED, Acquire);
    // A copied process has the parent's state without its thread. The helper thread itself comes here from
    // a destructor of a library that it closes.
    let has_stopped = || STATE.load(Acquire) & WORKING == 0 || attention::is_copy() || is_current();
    wait_until(has_stopped, Patience::Long) != Waited::TooLong
}

/// Does nothing if the child of a fork that was nested in another has reset the state.
pub fn resume() {
    let _ = STATE.fetch_update(Release, Relaxed, |state| state.checked_sub(QUIESCED));
}

#[derive(PartialEq, Eq)]
enum Waited {
    Done,
    /// The helper thread waits for a lock, or for too long for something else.
    Asleep,
    TooLong,
}

fn wait_until(is_done: impl Fn() -> bool, patience: Patience) -> Waited {
    /// In its work the thread sleeps for a lock only. Outside it wakes up within a second.
    const LOCK_CHECKS: u32 = 100;
    const SLEEPING_CHECKS: u32 = 20 * LOCK_CHECKS;
    let checks = match patience {
        Patience::None => 0,
        Patience::Short => LOCK_CHECKS,
        Patience::Long => 10_000,
    };
    let mut sleeping = 0;
    for _ in 0..checks {
        if is_done() {
            return Waited::Done;
        }
        sleep_1ms();
        let (id, is_working) = (ID.load(Relaxed), STATE.load(Relaxed) & WORKING != 0);
        sleeping = match id == 0 || procfs::is_asleep(id) {
            true if is_working => sleeping + SLEEPING_CHECKS / LOCK_CHECKS,
            true => sleeping + 1,
            false => 0,
        };
        if sleeping >= SLEEPING_CHECKS {
            return Waited::Asleep;
        }
    }
    match is_done() {
        true => Waited::Done,
        false => Waited::TooLong,
    }
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
        assert!(quiesce() && quiesce());
        resume();
        std::thread::scope(|scope| {
            scope.spawn(|| run_work(|| DONE.store(true, Relaxed)));
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!DONE.load(Relaxed));
            resume();
        });
        assert!(DONE.load(Relaxed));
        resume();
        run_work(|| ());
    }
}
