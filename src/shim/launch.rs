//! Decides when the governor's thread starts, and holds its counters.
//!
//! It starts when a process first holds enough memory (`flarena_shared::defaults`): a second thread
//! costs start-up time. It starts only from calls of the program. Inside libc the caller may hold a
//! lock that `pthread_create` needs.
//!
//! `STATE` is absent, started, ending or refused. Refused is final, except in the child of a fork. In a
//! process without a governor, calls of the program purge the recycler's old pages.

use flarena_sys::errno::SavedErrno;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicU8, Ordering::Relaxed};
use std::sync::OnceLock;

use flarena_shared::defaults::{GOVERNOR_START_BYTES, GOVERNOR_START_CACHED_BYTES};

use crate::backends::{choose, jemalloc};
use crate::{channel, memory_limit};
use flarena_recycler as recycler;
use flarena_recycler::Governor;
use flarena_sys::thread::helper::{self, Patience};
use flarena_sys::thread::spawn::{self, Body};
use flarena_sys::{
    attention, config, loader::callers, owner, proc::cgroup, proc::procfs, seccomp, time,
};
use rustix::time::ClockId;

const ABSENT: u8 = 0;
const STARTED: u8 = 1;
/// There will be no governor: the system refused a thread, the user wants none, or it has stopped.
const REFUSED: u8 = 2;
/// The governor is to end. Another starts once it has ended.
const ENDING: u8 = 3;

static STATE: AtomicU8 = AtomicU8::new(ABSENT);
/// Allocations and frees of large blocks in a process without a governor.
static LARGE_CALLS: AtomicU32 = AtomicU32::new(0);
/// The thread's main function. Set once, by the constructor.
static BODY: OnceLock<Body> = OnceLock::new();

// Counters of the governor in this process.
pub static TICKS: AtomicU64 = AtomicU64::new(0);
pub static NEAR_LIMIT: AtomicBool = AtomicBool::new(false);
/// Stalls that the kernel reported (PSI).
pub static PRESSURE_EVENTS: AtomicU64 = AtomicU64::new(0);

/// A call of the library that checks whether the process needs a governor.
#[derive(Clone, Copy)]
pub enum StartTrigger {
    /// The program called a function of flarena: a trim or a marker.
    Request,
    /// The program allocated or resized a large block.
    LargeBlock,
    /// A large block was freed. The return address shows whether the program or libc is the caller.
    LargeFree { return_address: usize },
    /// One in a hundred frees of any size, so that a heap without large blocks gets a governor, too.
    SampledFree { return_address: usize },
}

/// Sets the thread's main function. Called once, by the constructor.
pub fn configure(body: Body) {
    let _ = BODY.set(body);
    spawn::configure();
}

pub fn is_running() -> bool {
    STATE.load(Relaxed) == STARTED && !attention::is_copy()
}

/// True if there may be a governor, also while it ends.
pub fn may_run() -> bool {
    matches!(STATE.load(Relaxed), STARTED | ENDING)
}

/// True if a call for a large block may have to start the governor, or to do its work.
pub fn wants_calls() -> bool {
    match STATE.load(Relaxed) {
        REFUSED => true,
        // The next call finds out whether an ending governor has ended.
        ABSENT | ENDING => recycler::wants_governor(),
        _ => false,
    }
}

/// Changes the state from any other. The calls for large blocks take notice.
fn enter(state: u8) -> u8 {
    let before = STATE.swap(state, Relaxed);
    attention::set(attention::GOVERNOR);
    before
}

/// Changes the state if it is `from`.
fn exchange(from: u8, to: u8) -> bool {
    let changed = STATE.compare_exchange(from, to, Relaxed, Relaxed).is_ok();
    attention::set(attention::GOVERNOR);
    changed
}

/// True if the governor is to end: its waits do not go on.
pub fn is_ending() -> bool {
    matches!(STATE.load(Relaxed), REFUSED | ENDING)
}

/// True if the governor is to end, and another may start later.
pub fn will_restart() -> bool {
    STATE.load(Relaxed) == ENDING
}

/// Starts the governor if there is none and the process holds enough memory. For a large block only where `attention` says
/// that there may be work.
pub fn start_if_due(trigger: StartTrigger) {
    match trigger {
        _ if STATE.load(Relaxed) == REFUSED => recycler::decay_if_due(),
        StartTrigger::Request => start_from(GOVERNOR_START_BYTES),
        StartTrigger::LargeBlock | StartTrigger::LargeFree { .. } if attention::is_copy() => {
            continue_without_governor();
        }
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
    let state = enter(REFUSED);
    if state == REFUSED {
        return true;
    }
    run_without_governor();
    state == ABSENT || {
        ask_to_end();
        helper::await_end(Patience::Long)
    }
}

/// Ends the governor as `end` does, but the next call that needs one starts another. False if it has not ended
/// in time. Takes no lock: the caller may be a signal handler, and the interrupted code the one that ends it.
pub fn end_until_next_start(patience: Patience) -> bool {
    let is_first = exchange(STARTED, ENDING);
    if is_first {
        ask_to_end();
    }
    helper::await_end(match patience {
        // A handler that runs again and again would keep the holder of the lock from going on.
        Patience::Short if !is_first => Patience::None,
        patience => patience,
    })
}

fn ask_to_end() {
    // Before the thread has ended: a fork may take it for a thread of the program, but never the
    // reverse.
    helper::set_exists(false);
    channel::wake();
}

/// True if there is no governor, and one may start. A vfork child shares this memory with its parent, and cannot
/// tell whether its parent's governor has ended.
fn is_absent() -> bool {
    match STATE.load(Relaxed) {
        ABSENT => true,
        ENDING if !seccomp::is_vfork_child() && helper::forget_ended() => {
            LARGE_CALLS.store(0, Relaxed);
            exchange(ENDING, ABSENT)
        }
        _ => false,
    }
}

/// Records that a panic ends the governor. Does nothing that could panic again: a second panic would
/// end the process.
pub fn give_up() {
    enter(REFUSED);
    recycler::set_governor(Governor::Unavailable);
    helper::set_exists(false);
    // A fork waits for the end of a piece of work.
    helper::end_work();
}

/// The child of a fork has no governor. It starts its own once it holds enough memory.
pub fn after_fork_in_child() {
    LARGE_CALLS.store(0, Relaxed);
    TICKS.store(0, Relaxed);
    NEAR_LIMIT.store(false, Relaxed);
    PRESSURE_EVENTS.store(0, Relaxed);
    attention::accept();
    // The child inherits a seccomp filter, which may punish getpid.
    if seccomp::allows_common_calls() {
        enter(ABSENT);
        seccomp::remember_process();
    } else {
        enter(REFUSED);
    }
}

/// No fork handler has told this process that the governor is its parent's. It may not be able to create
/// threads. The caller has just used the recycler, so no thread of the parent holds the recycler's lock.
#[cold]
fn continue_without_governor() {
    if enter(REFUSED) != REFUSED {
        helper::after_fork_in_child();
        seccomp::remember_process();
        run_without_governor();
    }
}

/// For a process whose large blocks suffice for a governor, if they are resident. Checks that ever
/// more rarely: blocks that are allocated and never touched would make it check at each call.
#[inline(never)]
fn after_large_block() {
    /// Reading the resident size costs some microseconds.
    const MOST_CALLS_BETWEEN: u32 = 1024;
    if !is_absent() {
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
    /// Reading the resident size costs some microseconds, and one hot block may be all that is freed.
    const PAUSE_MS: u64 = 1;
    static READ_MS: AtomicU64 = AtomicU64::new(0);
    if !matches!(STATE.load(Relaxed), ABSENT | ENDING) {
        return;
    }
    let now_ms = time::now(ClockId::MonotonicCoarse).as_millis() as u64;
    if now_ms >= READ_MS.load(Relaxed) + PAUSE_MS && callers::is_in_program(return_address) {
        READ_MS.store(now_ms, Relaxed);
        start_from(GOVERNOR_START_BYTES);
    }
}

/// Starts the governor if at least so much is resident.
#[cold]
fn start_from(bytes: u64) {
    // A vfork child shares this memory with its parent. A thread that it started would end with the
    // child, and the parent would take the thread for its own.
    let may_start =
        owner::owns_malloc() && !attention::is_copy() && !seccomp::is_vfork_child() && is_absent();
    if !may_start {
        return;
    }
    if procfs::resident_bytes().is_none_or(|resident| resident >= bytes) {
        start();
    }
}

fn start() {
    if !exchange(ABSENT, STARTED) {
        return;
    }
    let _errno = SavedErrno::save();
    if !config::settings().governor {
        enter(REFUSED);
        run_without_governor();
    } else if choose::is_jemalloc() && !jemalloc::make_spare_arena() {
        // jemalloc crashes in a new thread if it cannot allocate an arena, so a later call tries again. Not if the program
        // has restricted itself meanwhile.
        let _ = exchange(STARTED, ABSENT) || exchange(ENDING, ABSENT);
        recycler::set_governor(Governor::Unavailable);
    } else if BODY.get().is_some_and(|body| spawn::create(*body)) {
        // Counted only once it exists: a fork must never take a thread of the program for the
        // governor.
        helper::set_exists(true);
        if !is_running() {
            // A signal handler has ended it.
            helper::set_exists(false);
        }
    } else {
        enter(REFUSED);
        run_without_governor();
    }
}

/// Tells the recycler whether there is a governor, and the limit of the control group. A process that holds little memory
/// never reads that limit.
pub fn tell_recycler(governor: Governor) {
    recycler::set_governor(governor);
    if config::settings().memory_limit_bytes.is_none() {
        recycler::set_memory_limit(cgroup::group().memory.limit_bytes);
    }
}

/// The recycler caches little from now on.
fn run_without_governor() {
    tell_recycler(Governor::Unavailable);
    let _ = memory_limit::watch(config::settings());
}
