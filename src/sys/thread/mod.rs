//! The calling thread without thread-local variables; the library's own thread, and its rest during a fork.

pub mod cancellation;
pub mod cpu;
pub mod signals;
pub mod spawn;

use std::sync::atomic::{
    AtomicU32, AtomicU8, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use std::time::Duration;

use crate::{proc::procfs, seccomp};

/// Tells the calling thread from every other of the process: its thread pointer. Not zero, and even;
/// the thread that forks keeps it in the child.
#[inline(always)]
pub fn token() -> u64 {
    let token: u64;
    #[cfg(miri)]
    {
        // Miri knows no assembly.
        thread_local!(static HERE: u64 = const { 0 });
        token = HERE.with(|here| std::ptr::from_ref(here).addr() as u64);
    }
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the psABI keeps the thread pointer's own value at its address. libc sets it before any
    // code of a library runs.
    unsafe {
        std::arch::asm!("mov {}, fs:[0]", out(reg) token, options(nostack, preserves_flags, readonly, pure));
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: the register is readable in every program.
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) token, options(nostack, preserves_flags, nomem, pure));
    }
    token
}

/// The same as an address: libc keeps what is the thread's around it.
#[inline(always)]
pub fn pointer() -> *const u8 {
    std::ptr::with_exposed_provenance(token() as usize)
}

/// Another thread is in a system call that the calling one waits for.
pub fn give_way() {
    if seccomp::is_closed() {
        // A malloc does not yield: a list of permitted calls may kill for it.
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
}

/// Threads of this library, which the program knows nothing of.
static OURS: AtomicU32 = AtomicU32::new(0);

pub fn set_ours(count: u32) {
    OURS.store(count, Relaxed);
}

pub fn has_ours() -> bool {
    OURS.load(Relaxed) > 0
}

/// True where the program has no thread but the calling one. False when the system does not tell.
pub fn is_only_one_of_program() -> bool {
    // Behind a list that kills, /proc cannot be asked.
    let threads = (!seccomp::is_closed()).then(procfs::threads).flatten();
    threads.is_some_and(|count| count <= u64::from(1 + OURS.load(Relaxed)))
}

const WORKING: u8 = 1;
const PAUSED: u8 = 2;
static OUR_WORK: AtomicU8 = AtomicU8::new(0);
/// Our thread's id; 0 before it runs.
static OUR_ID: AtomicU32 = AtomicU32::new(0);

/// Called by our thread, first.
pub fn enter() {
    let id = rustix::thread::gettid().as_raw_nonzero().get();
    OUR_ID.store(id.unsigned_abs(), Relaxed);
}

/// True in our thread.
pub fn is_ours() -> bool {
    rustix::thread::gettid()
        .as_raw_nonzero()
        .get()
        .unsigned_abs()
        == OUR_ID.load(Relaxed)
}

/// True where our thread ran, and the kernel is done with it.
pub fn has_ended() -> bool {
    let id = OUR_ID.load(Relaxed);
    // SAFETY: signal 0 is none; it only asks.
    id != 0 && unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), id, 0) } != 0
}

/// Runs a piece of our thread's work: whatever may allocate or hold a lock. Waits while it is paused.
pub fn work<R>(piece: impl FnOnce() -> R) -> R {
    begin_work();
    let done = piece();
    end_work();
    done
}

/// Waits for somebody in the middle of a piece of our thread's work, which ends here and goes on after it: a fork goes by
/// meanwhile, and must not meet a thread that may wake in the middle of it. Nothing is held here.
pub fn between_work<R>(wait: impl FnOnce() -> R) -> R {
    if !is_ours() {
        return wait();
    }
    end_work();
    let done = wait();
    begin_work();
    done
}

fn begin_work() {
    while OUR_WORK
        .compare_exchange(0, WORKING, Acquire, Relaxed)
        .is_err()
    {
        sleep_a_moment();
    }
}

/// The end of a piece, also of one that will not return.
pub fn end_work() {
    OUR_WORK.fetch_and(!WORKING, Release);
}

/// Keeps our thread from its next piece of work until `resume`, and waits for the end of this one. False:
/// it goes on for too long.
///
/// A piece that sleeps all the while waits for a lock that the caller holds: it counts as ended, for the
/// caller was interrupted by a signal, and will not go on before we return.
pub fn pause() -> bool {
    const SLEEPING_FOR: u32 = 200;
    const LONGEST: u32 = 10_000;
    OUR_WORK.fetch_or(PAUSED, Acquire);
    let mut sleeping = 0;
    for _ in 0..LONGEST {
        if OUR_WORK.load(Acquire) & WORKING == 0 {
            return true;
        }
        sleep_a_moment();
        let is_asleep = procfs::is_asleep(OUR_ID.load(Relaxed));
        sleeping = if is_asleep { sleeping + 1 } else { 0 };
        if sleeping == SLEEPING_FOR {
            return true;
        }
    }
    false
}

pub fn resume() {
    OUR_WORK.fetch_and(!PAUSED, Release);
}

/// The child has none of our threads.
pub fn after_fork_in_child() {
    OUR_WORK.store(0, Relaxed);
    OUR_ID.store(0, Relaxed);
    set_ours(0);
}

/// A millisecond, or less.
pub fn sleep_a_moment() {
    sleep(Duration::from_millis(1));
}

/// Less than a second; a signal may end it. No cancellation point.
pub fn sleep(moment: Duration) {
    let time = rustix::thread::Timespec {
        tv_sec: 0,
        tv_nsec: moment.subsec_nanos().into(),
    };
    let _ = rustix::thread::nanosleep(&time);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_different_tokens() {
        let here = token();
        assert_eq!(here, token());
        assert!(here != 0 && here.is_multiple_of(2));
        let there = std::thread::scope(|scope| scope.spawn(token).join().unwrap());
        assert_ne!(here, there);
    }

    #[test]
    fn no_work_is_done_between_pause_and_resume() {
        use std::sync::atomic::AtomicBool;
        static DONE: AtomicBool = AtomicBool::new(false);
        assert!(pause());
        std::thread::scope(|scope| {
            scope.spawn(|| work(|| DONE.store(true, Relaxed)));
            std::thread::sleep(Duration::from_millis(20));
            assert!(!DONE.load(Relaxed));
            resume();
        });
        assert!(DONE.load(Relaxed));
    }
}
