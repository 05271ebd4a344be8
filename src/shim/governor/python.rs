//! What the governor asks of Python's main thread: a full garbage collection, and that the libraries which keep
//! memory beside malloc give back what is free.

use std::ffi::{c_int, CStr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::python::{self, Call, Object};
use crate::report::garbage;
use flarena_recycler as recycler;
use flarena_sys::{config, thread};

/// Whether it may run here, and the collection itself; what the Python package does at its stages.
const COLLECT: &str = concat!(
    include_str!("../../python/flarena/_safety.py"),
    "\nif may_collect():\n    gc.collect()\n    done = True\n\0"
);
/// What the Python package does at a trim.
const RELEASE: &str = concat!(
    include_str!("../../python/flarena/_pools.py"),
    "\nrelease()\ndone = True\n\0"
);

/// One thing that can be asked for, one request at a time.
pub struct Errand {
    call: Call,
    /// Requests that were handed over, and those that have run.
    asked: AtomicU64,
    answered: AtomicU64,
}

pub static COLLECTION: Errand = Errand::new(collect);
pub static POOLS: Errand = Errand::new(release_pools);

impl Errand {
    const fn new(call: Call) -> Errand {
        Errand {
            call,
            asked: AtomicU64::new(0),
            answered: AtomicU64::new(0),
        }
    }

    /// False where nobody can be asked, or the last request is still to come.
    pub fn ask(&self) -> bool {
        if self.is_waiting() || !python::ask(self.call) {
            return false;
        }
        self.asked.fetch_add(1, Relaxed);
        true
    }

    /// It was asked for and has not run yet.
    pub fn is_waiting(&self) -> bool {
        self.answered.load(Relaxed) < self.asked.load(Relaxed)
    }

    /// Waits until what was asked for has run; false when it has not.
    pub fn wait(&self, patience: Duration) -> bool {
        let end = Instant::now() + patience;
        while self.is_waiting() && Instant::now() < end {
            thread::between_work(|| thread::sleep(Duration::from_millis(5)));
        }
        !self.is_waiting()
    }

    fn is_over(&self) {
        self.answered.store(self.asked.load(Relaxed), Relaxed);
    }
}

/// A forked child has none of its parent's pending calls, as it has no governor.
pub fn after_fork_in_child() {
    COLLECTION.is_over();
    POOLS.is_over();
}

fn run(text: &'static str) -> bool {
    let Ok(text) = CStr::from_bytes_with_nul(text.as_bytes()) else {
        return false;
    };
    // SAFETY: called by the pending calls below alone.
    unsafe { python::run(text, c"done") }
}

/// A pending call: in Python's main thread, with its lock.
extern "C" fn collect(_: Object) -> c_int {
    let (collections, before) = (garbage::total().collections, recycler::live_bytes());
    let started = Instant::now();
    let collected = run(COLLECT);
    // Where the Python package is loaded, it has been noted already.
    if collected && garbage::total().collections == collections {
        let released = before.saturating_sub(recycler::live_bytes());
        garbage::note(released, started.elapsed().as_micros() as u64);
    }
    COLLECTION.is_over();
    0
}

/// The same. A program that had been asked while it rested, and is at work again, keeps what it is about to use.
/// Where nobody has such a pool not even our text runs: the objects that it makes may wake Python's collector.
extern "C" fn release_pools(_: Object) -> c_int {
    // SAFETY: a pending call.
    let has_pools = unsafe { python::has_imported(&[c"pyarrow", c"torch"]) };
    if has_pools && EXPIRES_MS.load(Relaxed) > now_ms() {
        run(RELEASE);
    }
    POOLS.is_over();
    0
}

static EXPIRES_MS: AtomicU64 = AtomicU64::new(0);

/// Asks for the pools of Python's libraries, where they are to be kept small; worth doing for this long.
pub fn ask_for_pools(worth: Duration) -> bool {
    if !config::settings().pools || POOLS.is_waiting() {
        return false;
    }
    EXPIRES_MS.store(now_ms() + worth.as_millis() as u64, Relaxed);
    POOLS.ask()
}

fn now_ms() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}
