//! Python's full garbage collections, watched from C: what stands in `gc.callbacks` is a function of ours that runs no
//! instruction of Python's.
//!
//! Between two instructions the interpreter lets other threads in, and before 3.12 a collection begins wherever
//! an object is made: in the middle of C code that counts on being alone. `ast.literal_eval`, which reads the header of each
//! array of NumPy's, fails in CPython 3.11.0 to 3.11.7 when another thread comes in there.

use std::ffi::c_int;
use std::sync::atomic::{
    AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

use rustix::time::{clock_gettime, ClockId};

use crate::python::{self, Object};
use crate::report::garbage;
use flarena_recycler as recycler;

/// The process whose collection runs: a child that is forked meanwhile has none. Its beginning:
static RUNS_IN: AtomicU32 = AtomicU32::new(0);
static LIVE_BEFORE: AtomicU64 = AtomicU64::new(0);
static BEGAN_US: AtomicU64 = AtomicU64::new(0);
static BEGAN_CPU_US: AtomicU64 = AtomicU64::new(0);

static COUNT: AtomicU64 = AtomicU64::new(0);
/// By all of them.
static RELEASED: AtomicU64 = AtomicU64::new(0);
static LAST_AFTER: AtomicU64 = AtomicU64::new(0);
static LAST_CPU_US: AtomicU64 = AtomicU64::new(0);

/// What `flarena_collections` answers, for the Python package alone.
#[repr(C)]
pub struct Seen {
    count: u64,
    /// By all of them.
    released: u64,
    /// After the last one, and its processor time.
    live_after: u64,
    cpu_us: u64,
}

/// The body of `flarena_collections`; -1 where the process has no Python that can be asked.
///
/// # Safety
/// `seen` is null, or valid for writing.
pub unsafe fn seen(seen: *mut Seen) -> c_int {
    if !python::find() {
        return -1;
    }
    if !seen.is_null() {
        let told = Seen {
            // Counted last, so read first.
            count: COUNT.load(Acquire),
            released: RELEASED.load(Relaxed),
            live_after: LAST_AFTER.load(Relaxed),
            cpu_us: LAST_CPU_US.load(Relaxed),
        };
        // SAFETY: not null, so valid for writing, says the caller.
        unsafe { seen.write(told) };
    }
    0
}

/// The body of `flarena_on_collection`, which stands in `gc.callbacks`.
///
/// # Safety
/// The thread is attached to Python (it holds its lock, where it has one); `phase` is a str and `info` a dict, as `gc` says.
pub unsafe fn on_collection(phase: Object, info: Object) {
    // SAFETY: the thread is attached to Python, and these are the objects that `gc` promises.
    let Some(begins) = (unsafe { python::full_collection_begins(phase, info) }) else {
        return;
    };
    let live = recycler::live_bytes();
    let (now, cpu) = (us(ClockId::Monotonic), us(ClockId::ThreadCPUTime));
    if begins {
        LIVE_BEFORE.store(live, Relaxed);
        BEGAN_US.store(now, Relaxed);
        BEGAN_CPU_US.store(cpu, Relaxed);
        RUNS_IN.store(std::process::id(), Relaxed);
    } else if RUNS_IN.swap(0, Relaxed) == std::process::id() {
        let released = LIVE_BEFORE.load(Relaxed).saturating_sub(live);
        RELEASED.fetch_add(released, Relaxed);
        LAST_AFTER.store(live, Relaxed);
        LAST_CPU_US.store(cpu.saturating_sub(BEGAN_CPU_US.load(Relaxed)), Relaxed);
        COUNT.fetch_add(1, Release);
        let took = now.saturating_sub(BEGAN_US.load(Relaxed));
        garbage::note(released, took);
    }
}

fn us(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1000
}
