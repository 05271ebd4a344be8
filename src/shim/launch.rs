//! Whether and when the governor's thread is started, and what it counts.
//!
//! It starts lazily, when a process first holds 64 MiB, or 32 MiB of large blocks, or 16 MiB of
//! freed ones, because a second thread breaks `unshare` and `setns` and costs start-up time: a shell
//! never has one. It is started from calls of the program only, never from inside libc, where a lock
//! that `pthread_create` needs may be held.
//!
//! What the thread does is the governor's business: boot hands its body over. Where there can be none, calls of
//! the program age the recycler's pages.

use flarena_sys::errno;
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicU8, Ordering::Relaxed, Ordering::SeqCst,
};

use rustix::thread::futex;

use flarena_shared::defaults::{GOVERNOR_START_BYTES, GOVERNOR_START_CACHED_BYTES};

use crate::choice::{choose, jemalloc};
use flarena_recycler as recycler;
use flarena_sys::thread::spawn::{self, Body};
use flarena_sys::{config, loader::callers, owner, proc::cgroup, proc::procfs, seccomp, thread};

const ABSENT: u8 = 0;
const STARTED: u8 = 1;
/// The system refused a thread, and asking again would not help; or the user wants none.
const REFUSED: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(ABSENT);
/// The governor is in its wait, or has stopped.
static ASLEEP: AtomicBool = AtomicBool::new(false);
/// 1 when it is to stop for good.
static RETIRED: AtomicU32 = AtomicU32::new(0);
/// Large blocks seen without a governor.
static LARGE_CALLS: AtomicU32 = AtomicU32::new(0);
/// What the thread runs; null until boot has handed it over.
static BODY: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());
/// What the governor has done so far in this process.
pub struct Counters {
    pub ticks: AtomicU64,
    pub near_limit: AtomicBool,
    /// Pressure events of the kernel.
    pub pressure_events: AtomicU64,
    pub reclaims: AtomicU64,
    pub reclaimed_bytes: AtomicU64,
}

pub static COUNTERS: Counters = Counters {
    ticks: AtomicU64::new(0),
    near_limit: AtomicBool::new(false),
    pressure_events: AtomicU64::new(0),
    reclaims: AtomicU64::new(0),
    reclaimed_bytes: AtomicU64::new(0),
};

/// An occasion to look whether the process is worth a governor by now.
#[derive(Clone, Copy)]
pub enum Occasion {
    /// The program asked us for something: a trim, a marker.
    Request,
    /// The program allocated or resized a large block.
    LargeBlock,
    /// Somebody freed a large block, from a call that returns to this address.
    LargeFree { return_address: usize },
    /// One free in some thousands, whatever its size: lets a heap of small blocks alone have its
    /// governor too.
    SampledFree { return_address: usize },
}

/// Called once by the constructor.
pub fn configure(body: Body) {
    BODY.store(body as *mut (), Relaxed);
    spawn::configure();
}

pub fn is_running() -> bool {
    STATE.load(Relaxed) == STARTED
}

/// Starts the thread if there is none and the process holds enough.
#[inline]
pub fn start_if_due(occasion: Occasion) {
    match occasion {
        _ if STATE.load(Relaxed) == REFUSED => recycler::decay_if_due(),
        Occasion::Request => start_from(GOVERNOR_START_BYTES),
        Occasion::LargeBlock if recycler::wants_governor() => after_large_block(),
        Occasion::LargeFree { return_address } if recycler::wants_governor() => {
            if callers::is_program(return_address) {
                after_large_block();
            }
        }
        Occasion::SampledFree { return_address } => after_sample(return_address),
        Occasion::LargeBlock | Occasion::LargeFree { .. } => {}
    }
}

/// No governor from now on, nor ever. True when there was one, which is then to end.
pub fn stop() -> bool {
    if seccomp::is_closed() {
        return false;
    }
    let was_running = STATE.swap(REFUSED, Relaxed) == STARTED;
    do_without();
    was_running
}

/// The governor has met a defect of ours and works no more. Looks at nothing but what must be told: a second defect would end
/// the process.
pub fn give_up() {
    STATE.store(REFUSED, Relaxed);
    recycler::set_governed(false);
    recycler::set_governor_unavailable();
}

/// A forked child has no governor; it starts its own when it holds enough.
pub fn after_fork_in_child() {
    // A seccomp list is inherited.
    let closed = seccomp::is_closed();
    STATE.store(if closed { REFUSED } else { ABSENT }, Relaxed);
    LARGE_CALLS.store(0, Relaxed);
    ASLEEP.store(false, Relaxed);
    seccomp::remember_process();
}

/// The program closes itself in: no thread is started any more, and the one that runs stops for good, for it may get
/// the list too (`SECCOMP_FILTER_FLAG_TSYNC`). Returns when it has, or after a second.
pub fn retire() {
    let state = STATE.swap(REFUSED, Relaxed);
    if state == STARTED || thread::has_ours() {
        RETIRED.store(1, SeqCst);
        for _ in 0..1000 {
            if ASLEEP.load(SeqCst) {
                break;
            }
            thread::sleep_a_moment();
        }
    }
    if state != REFUSED {
        recycler::set_governed(false);
        do_without();
    }
}

/// What the governor waits by. While it waits it makes no other system call, and after the program has closed itself
/// in it makes none but futex.
pub fn asleep<T>(wait: impl FnOnce() -> T) -> T {
    stop_if_retired();
    ASLEEP.store(true, SeqCst);
    stop_if_retired();
    let woken = wait();
    ASLEEP.store(false, SeqCst);
    stop_if_retired();
    woken
}

fn stop_if_retired() {
    while RETIRED.load(SeqCst) != 0 {
        ASLEEP.store(true, SeqCst);
        // Nobody wakes it; a spurious return is put back to sleep.
        let _ = futex::wait(&RETIRED, futex::Flags::PRIVATE, 1, None);
    }
}

/// In a process with enough large blocks: what is freed is cached, and somebody must age it. Blocks
/// that nobody touches come often and never suffice, hence the pauses.
fn after_large_block() {
    /// Reading the resident set costs some microseconds.
    const LONGEST_PAUSE: u32 = 1024;
    if STATE.load(Relaxed) != ABSENT {
        return;
    }
    if !config::settings().governor {
        return start();
    }
    let count = LARGE_CALLS.fetch_add(1, Relaxed).wrapping_add(1);
    if count.is_power_of_two() || count.is_multiple_of(LONGEST_PAUSE) {
        start_from(GOVERNOR_START_CACHED_BYTES);
    }
}

fn after_sample(return_address: usize) {
    /// Reading the resident set costs some microseconds.
    const EVERY: u32 = 8;
    static COUNT: AtomicU32 = AtomicU32::new(0);
    if STATE.load(Relaxed) == ABSENT
        && COUNT.fetch_add(1, Relaxed) % EVERY == EVERY - 1
        && callers::is_program(return_address)
    {
        start_from(GOVERNOR_START_BYTES);
    }
}

/// What was never touched is not resident, and needs nobody.
#[cold]
fn start_from(bytes: u64) {
    // A thread of a vfork child would die with it, while the parent, whose memory this is, took it for its own.
    if STATE.load(Relaxed) != ABSENT || !owner::owns_malloc() || !seccomp::is_own_memory() {
        return;
    }
    let page = procfs::page_bytes() as u64;
    if procfs::resident_pages().is_none_or(|pages| pages * page >= bytes) {
        start();
    }
}

fn start() {
    if STATE
        .compare_exchange(ABSENT, STARTED, Relaxed, Relaxed)
        .is_err()
    {
        return;
    }
    let errno = errno::get();
    if !config::settings().governor {
        STATE.store(REFUSED, Relaxed);
        do_without();
    } else if !has_room() {
        STATE.store(ABSENT, Relaxed);
        recycler::set_governor_unavailable();
    } else if create_governor() {
        // Not before there is one: a fork must never take a thread of the program's for ours.
        thread::set_ours(1);
    } else {
        STATE.store(REFUSED, Relaxed);
        do_without();
    }
    errno::set(errno);
}

/// Little is kept from now on, and the recycler knows the limit that the governor would have told it.
fn do_without() {
    recycler::set_governor_unavailable();
    if config::settings().memory_limit_bytes.is_none() {
        recycler::set_memory_limit(cgroup::memory().limit_bytes);
    }
}

/// Where memory has run out a new thread of jemalloc's crashes: then a later opportunity is better.
fn has_room() -> bool {
    !choose::is_jemalloc() || jemalloc::make_spare_arena()
}

fn create_governor() -> bool {
    let body = BODY.load(Relaxed);
    if body.is_null() {
        return false;
    }
    // SAFETY: only configure() stores here, a Body.
    let body: Body = unsafe { std::mem::transmute(body) };
    spawn::create(body)
}
