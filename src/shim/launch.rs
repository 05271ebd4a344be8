//! Decides when the governor's thread starts, and holds its counters.
//!
//! It starts when a process first holds enough memory (`flarena_shared::defaults`): a second thread
//! costs start-up time, and `unshare` and `setns` fail in a process with threads. It starts only
//! from calls of the program. Inside libc the caller may hold a lock that `pthread_create` needs.
//!
//! `STATE` is absent, started or refused. Refused is final, except in the child of a fork. In a
//! process without a governor, calls of the program purge the recycler's old pages.

use flarena_sys::errno;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicU8, Ordering::Relaxed};

use flarena_shared::defaults::{GOVERNOR_START_BYTES, GOVERNOR_START_CACHED_BYTES};

use crate::backends::{choose, jemalloc};
use crate::{channel, memory_limit};
use flarena_recycler as recycler;
use flarena_recycler::Governor;
use flarena_sys::thread::helper;
use flarena_sys::thread::spawn::{self, Body};
use flarena_sys::{config, loader::callers, owner, proc::cgroup, proc::procfs, seccomp};

const ABSENT: u8 = 0;
const STARTED: u8 = 1;
/// There will be no governor: the system refused a thread, the user wants none, or it has stopped.
const REFUSED: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(ABSENT);
/// Allocations and frees of large blocks in a process without a governor.
static LARGE_CALLS: AtomicU32 = AtomicU32::new(0);
/// The thread's main function; null until `configure`.
static BODY: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// Counters of the governor in this process.
pub struct Counters {
    pub ticks: AtomicU64,
    pub near_limit: AtomicBool,
    /// Stalls that the kernel reported (PSI).
    pub pressure_events: AtomicU64,
}

pub static COUNTERS: Counters = Counters {
    ticks: AtomicU64::new(0),
    near_limit: AtomicBool::new(false),
    pressure_events: AtomicU64::new(0),
};

/// A call of the library that checks whether the process needs a governor.
#[derive(Clone, Copy)]
pub enum StartTrigger {
    /// The program called a function of flarena: a trim or a marker.
    Request,
    /// The program allocated or resized a large block.
    LargeBlock,
    /// A large block was freed. The return address shows whether the program or libc is the caller.
    LargeFree { return_address: usize },
    /// One in some thousands of frees of any size, so that a heap without large blocks gets a
    /// governor, too.
    SampledFree { return_address: usize },
}

/// Sets the thread's main function. Called once, by the constructor.
pub fn configure(body: Body) {
    BODY.store(body as *mut (), Relaxed);
    spawn::configure();
}

pub fn is_running() -> bool {
    STATE.load(Relaxed) == STARTED
}

/// True if the governor is to end: its waits do not go on.
pub fn is_ending() -> bool {
    STATE.load(Relaxed) == REFUSED
}

/// Starts the governor if there is none and the process holds enough memory.
#[inline]
pub fn start_if_due(trigger: StartTrigger) {
    match trigger {
        _ if STATE.load(Relaxed) == REFUSED => recycler::decay_if_due(),
        StartTrigger::Request => start_from(GOVERNOR_START_BYTES),
        StartTrigger::LargeBlock if recycler::wants_governor() => after_large_block(),
        StartTrigger::LargeFree { return_address } if recycler::wants_governor() => {
            if callers::is_in_program(return_address) {
                after_large_block();
            }
        }
        StartTrigger::SampledFree { return_address } => after_sampled_free(return_address),
        StartTrigger::LargeBlock | StartTrigger::LargeFree { .. } => {}
    }
}

/// Ends the governor for good, starts none later, and waits until its thread has ended. Called before
/// the program restricts itself, because a seccomp filter may apply to all threads
/// (`SECCOMP_FILTER_FLAG_TSYNC`), and when the main thread ends alone: a process ends with its last
/// thread, which runs the exit handlers and must be one of the program. False if the governor has not
/// ended: it may wait for a lock that the calling thread holds.
pub fn end() -> bool {
    let state = STATE.swap(REFUSED, Relaxed);
    if state == REFUSED {
        return true;
    }
    run_without_governor();
    if state != STARTED {
        return true;
    }
    // Before the thread has ended: a fork may take it for a thread of the program, but never the
    // reverse.
    helper::set_exists(false);
    channel::wake();
    helper::await_end()
}

/// Records that a panic ends the governor. Does nothing that could panic again: a second panic would
/// end the process.
pub fn give_up() {
    STATE.store(REFUSED, Relaxed);
    recycler::set_governor(Governor::Unavailable);
    helper::set_exists(false);
    // A fork waits for the end of a piece of work.
    helper::end_work();
}

/// The child of a fork has no governor. It starts its own once it holds enough memory.
pub fn after_fork_in_child() {
    LARGE_CALLS.store(0, Relaxed);
    COUNTERS.ticks.store(0, Relaxed);
    COUNTERS.near_limit.store(false, Relaxed);
    COUNTERS.pressure_events.store(0, Relaxed);
    // The child inherits a seccomp filter, which may punish getpid.
    if seccomp::allows_common_calls() {
        STATE.store(ABSENT, Relaxed);
        seccomp::remember_process();
    } else {
        STATE.store(REFUSED, Relaxed);
    }
}

/// For a process whose large blocks suffice for a governor, if they are resident. Checks that ever
/// more rarely: blocks that are allocated and never touched would make it check at each call.
fn after_large_block() {
    /// Reading the resident size costs some microseconds.
    const MOST_CALLS_BETWEEN: u32 = 1024;
    if STATE.load(Relaxed) != ABSENT {
        return;
    }
    if !config::settings().governor {
        return start();
    }
    let count = LARGE_CALLS.fetch_add(1, Relaxed).wrapping_add(1);
    if count.is_power_of_two() || count.is_multiple_of(MOST_CALLS_BETWEEN) {
        start_from(GOVERNOR_START_CACHED_BYTES);
    }
}

fn after_sampled_free(return_address: usize) {
    /// Reading the resident size costs some microseconds.
    const EVERY: u32 = 8;
    static COUNT: AtomicU32 = AtomicU32::new(0);
    if STATE.load(Relaxed) == ABSENT
        && COUNT.fetch_add(1, Relaxed) % EVERY == EVERY - 1
        && callers::is_in_program(return_address)
    {
        start_from(GOVERNOR_START_BYTES);
    }
}

/// Starts the governor if at least so much is resident.
#[cold]
fn start_from(bytes: u64) {
    // A vfork child shares this memory with its parent. A thread that it started would end with the
    // child, and the parent would take the thread for its own.
    if STATE.load(Relaxed) != ABSENT || !owner::owns_malloc() || seccomp::is_vfork_child() {
        return;
    }
    if procfs::resident_bytes().is_none_or(|resident| resident >= bytes) {
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
        run_without_governor();
    } else if !has_memory_for_thread() {
        STATE.store(ABSENT, Relaxed);
        recycler::set_governor(Governor::Unavailable);
    } else if create_governor() {
        // Counted only once it exists: a fork must never take a thread of the program for the
        // governor.
        helper::set_exists(true);
    } else {
        STATE.store(REFUSED, Relaxed);
        run_without_governor();
    }
    errno::set(errno);
}

/// The recycler caches little from now on. It gets the memory limit here, as no governor will set
/// it.
fn run_without_governor() {
    let settings = config::settings();
    recycler::set_governor(Governor::Unavailable);
    if settings.memory_limit_bytes.is_none() {
        recycler::set_memory_limit(cgroup::memory().limit_bytes);
    }
    memory_limit::watch(settings.memory_limit_bytes, settings.pressure);
}

/// jemalloc crashes in a new thread if it cannot allocate an arena. False means: try again later.
fn has_memory_for_thread() -> bool {
    !choose::is_jemalloc() || jemalloc::make_spare_arena()
}

fn create_governor() -> bool {
    let body = BODY.load(Relaxed);
    if body.is_null() {
        return false;
    }
    // SAFETY: `BODY` is null or the Body that `configure` stored.
    let body: Body = unsafe { std::mem::transmute(body) };
    spawn::create(body)
}
