//! Python's full garbage collections, watched from C: what stands in `gc.callbacks` is a function of ours that runs no
//! instruction of Python's.
//!
//! Between two instructions the interpreter lets other threads in, and before 3.12 a collection begins wherever
//! an object is made: in the middle of C code that counts on being alone. `ast.literal_eval`, which reads the header of each
//! array of NumPy's, fails in CPython 3.11.0 to 3.11.7 when another thread comes in there.

use std::ffi::{c_char, c_int, c_long, c_void, CStr};
use std::sync::atomic::{
    AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

use rustix::time::{clock_gettime, ClockId};

use crate::process::found::Found;
use crate::process::symbols;
use crate::recycler;
use crate::report::garbage;

/// The generation that holds all others.
const FULL: c_long = 2;

type Object = *mut c_void;

/// What we need of Python, under the names that every version since 3.9 gives it.
struct Api {
    compare: unsafe extern "C" fn(Object, *const c_char) -> c_int,
    item: unsafe extern "C" fn(Object, *const c_char) -> Object,
    number: unsafe extern "C" fn(Object) -> c_long,
}

static API: Found<Api> = Found::new();

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
    if API.get().is_none() {
        match Api::find() {
            Some(api) => API.keep(api),
            None => return -1,
        };
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
    let Some(api) = API.get() else {
        return;
    };
    // SAFETY: the thread is attached to Python, and these are the objects that `gc` promises.
    let Some(begins) = (unsafe { api.begins(phase, info) }) else {
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

impl Api {
    fn find() -> Option<Api> {
        fn function<F>(name: &CStr) -> Option<F> {
            // SAFETY: each field below has the type that Python's headers give to the function.
            unsafe { symbols::cast(symbols::first(name)) }
        }
        Some(Api {
            compare: function(c"PyUnicode_CompareWithASCIIString")?,
            item: function(c"PyDict_GetItemString")?,
            number: function(c"PyLong_AsLong")?,
        })
    }

    /// True where a full collection begins, false where it ends, none of any other.
    ///
    /// # Safety
    /// The thread is attached to Python; a str and a dict.
    unsafe fn begins(&self, phase: Object, info: Object) -> Option<bool> {
        // SAFETY: the thread is attached, says the caller; what is looked up is borrowed, and not kept.
        unsafe {
            let generation = (self.item)(info, c"generation".as_ptr());
            let is_full = !generation.is_null() && (self.number)(generation) == FULL;
            is_full.then(|| (self.compare)(phase, c"start".as_ptr()) == 0)
        }
    }
}
