//! Full garbage collections of Python: when to request one, and what they released.
//!
//! Python's collector counts objects. This module counts the bytes of large blocks instead. It
//! decides by `policy`, learns of each collection from a function in `gc.callbacks`, and keeps the
//! totals for markers and statistics. The stages of a program and the governor request collections
//! here, then run `gc.collect()` in Python. Only this module changes the policy's state, under
//! `STATE`. It never allocates or calls Python under that lock. The totals are atomics, as a marker
//! in a signal handler reads them.

mod policy;

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use rustix::time::ClockId;

use crate::pools;
use crate::python::{self, Object};
use flarena_recycler as recycler;
use flarena_shared::settings::Settings;
use flarena_sys::config;
use flarena_sys::proc::sharing::{self, Sharing};
use flarena_sys::sync::lock::{Guard, Lock};
use flarena_sys::time;

use policy::{Collection, CollectionPolicy};
pub use policy::{Depth, Party, Reason, Requester};

static STATE: Lock<State> = Lock::new(State {
    policy: CollectionPolicy::new(),
    run_at_stage: None,
    run_in_callback: None,
});

/// The state still has the parent's requests. The next call that locks it forgets them.
static HAS_REQUESTS_OF_PARENT: AtomicBool = AtomicBool::new(false);

/// Full ones.
static COLLECTIONS: AtomicU64 = AtomicU64::new(0);
static YOUNG_COLLECTIONS: AtomicU64 = AtomicU64::new(0);
static RELEASED_BYTES: AtomicU64 = AtomicU64::new(0);
static SPENT_US: AtomicU64 = AtomicU64::new(0);
static LIVE_AFTER_BYTES: AtomicU64 = AtomicU64::new(0);
/// The part of the totals that is in a marker already.
static MARKED_BYTES: AtomicU64 = AtomicU64::new(0);
static MARKED_MS: AtomicU64 = AtomicU64::new(0);
/// The least of `LIVE_AFTER_BYTES` since the last marker.
static LEAST_LIVE_AFTER_BYTES: AtomicU64 = AtomicU64::new(NONE);

const NONE: u64 = u64::MAX;

struct State {
    policy: CollectionPolicy,
    /// The readings at the beginning of the collection that a stage requested.
    run_at_stage: Option<Run>,
    /// The readings at the beginning of the collection that the callback has last seen begin.
    run_in_callback: Option<Run>,
}

fn state() -> Guard<'static, State> {
    let mut state = STATE.lock();
    if HAS_REQUESTS_OF_PARENT.swap(false, Relaxed) {
        state.forget_requests_of_parent();
    }
    state
}

impl State {
    /// The thread that would finish a request of the parent may not exist in the child.
    fn forget_requests_of_parent(&mut self) {
        self.run_at_stage = None;
        self.run_in_callback = None;
        self.policy.withdraw_all();
        if let Some(live_bytes) = recycler::live_bytes_unless_locked() {
            self.policy.forget_growth(live_bytes);
        }
    }
}

/// All collections since the process started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Total {
    pub collections: u64,
    pub released_bytes: u64,
    pub ms: u64,
    /// Bytes in large blocks after the last one.
    pub live_after_bytes: u64,
}

/// The collections between two markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Since {
    pub released_bytes: u64,
    pub ms: u64,
    /// The least that was in large blocks right after a full one.
    pub live_after_bytes: Option<u64>,
}

/// Readings at the beginning of a collection. Begin and end are in one thread.
#[derive(Clone, Copy)]
pub struct Run {
    depth: Depth,
    collections: u64,
    live_bytes: u64,
    elapsed_us: u64,
    cpu_us: u64,
}

impl Run {
    pub fn begin(depth: Depth) -> Run {
        Run {
            depth,
            collections: COLLECTIONS.load(Relaxed),
            live_bytes: recycler::live_bytes(),
            elapsed_us: now_us(),
            cpu_us: time::now_us(ClockId::ThreadCPUTime),
        }
    }

    /// Records the collection that ran since [`Run::begin`], unless the callback has recorded it
    /// already. It records full collections only.
    pub fn end(self) {
        if self.depth == Depth::Young || COLLECTIONS.load(Relaxed) == self.collections {
            self.record();
        }
    }

    /// Records a collection from [`Run::begin`] to now.
    fn record(self) {
        let collection = Collection {
            depth: self.depth,
            live_before_bytes: self.live_bytes,
            live_after_bytes: recycler::live_bytes(),
            cost_us: time::now_us(ClockId::ThreadCPUTime).saturating_sub(self.cpu_us),
        };
        record(collection, now_us().saturating_sub(self.elapsed_us));
    }
}

/// Grants a collection if one is due. The caller must then call [`finish`] or [`withdraw`].
pub fn request(reason: Reason) -> bool {
    let (live_bytes, now_us) = (recycler::live_bytes(), now_us());
    let is_granted = state().policy.request(reason, live_bytes, now_us);
    // Young objects are few, and a worker inherits hardly any.
    if is_granted && reason.depth() == Depth::Full && ends_sharing() {
        withdraw(reason.requester());
        return false;
    }
    is_granted
}

/// True if a full collection would make much memory private that this process shares with its parent
/// or its children: it writes to the header of each object that the collector knows.
pub fn ends_sharing() -> bool {
    let sizes = match sharing::read() {
        Sharing::Unshared => return false,
        Sharing::NotRead => return true,
        Sharing::Read(sizes) | Sharing::Estimated(sizes) => sizes,
    };
    policy::ends_sharing(sizes, pools::usage().pymalloc_bytes)
}

/// The granted request is over, whether or not the program ran a collection.
pub fn finish(requester: Requester) {
    state().policy.finish(requester);
}

/// The granted request could not be carried out, and not because the program refused it.
pub fn withdraw(requester: Requester) {
    state().policy.withdraw(requester);
}

/// The body of `flarena_stage_collection`, for the Python package only: `_native.py` has the names of the steps. The
/// package asks at each stage; 1 means that it should run the collection now. Then it must report in the same thread
/// whether it has. At the stages after which the program waits for others it asks in another way, and returns the cache.
pub fn stage_collection(step: c_int) -> c_int {
    match step {
        0 => ask_at_stage(Reason::Stage(Depth::Full)),
        1 => end_at_stage(Depth::Full, true),
        2 => end_at_stage(Depth::Full, false),
        3 => return_cache(),
        4 => ask_at_stage(Reason::Stage(Depth::Young)),
        5 => end_at_stage(Depth::Young, true),
        6 => end_at_stage(Depth::Young, false),
        7 => ask_at_stage(Reason::BeforeWait),
        _ => -1,
    }
}

fn ask_at_stage(reason: Reason) -> c_int {
    let is_granted = request(reason);
    if is_granted {
        let run = Run::begin(reason.depth());
        state().run_at_stage = Some(run);
    }
    c_int::from(is_granted)
}

fn end_at_stage(depth: Depth, has_run: bool) -> c_int {
    let run = state().run_at_stage.take();
    if has_run {
        run.into_iter().for_each(Run::end);
        finish((Party::Stages, depth));
    } else {
        withdraw((Party::Stages, depth));
    }
    0
}

/// Returns the recycler's cache now instead of after the decay time: the processes of a job have their
/// peaks one after the other. A user who chose a longer decay time wants the pages to stay.
fn return_cache() -> c_int {
    if config::settings().decay_ms <= Settings::DEFAULT.decay_ms {
        recycler::trim();
    }
    0
}

/// The body of `flarena_collections`: prepares `flarena_on_collection`. -1 if the process has no Python, or several.
pub fn prepare() -> c_int {
    -c_int::from(!python::prepare_callback())
}

/// The body of `flarena_on_collection`, a member of `gc.callbacks`.
///
/// It must run no Python code. Between two instructions the interpreter may switch threads, and
/// before Python 3.12 a collection may begin wherever C code makes an object, also in code that
/// does not expect a switch. For example `ast.literal_eval`, which parses the header of each NumPy
/// array, fails in CPython 3.11.0 to 3.11.7 if another thread runs it in between.
///
/// # Safety
/// The thread is attached to Python (it holds the GIL, if there is one). `phase` is a str and
/// `info` a dict, as `gc` passes them.
pub unsafe fn on_collection(phase: Object, info: Object) {
    // SAFETY: the thread is attached to Python, and these are the objects that `gc` passes.
    let Some(begins) = (unsafe { python::full_collection_begins(phase, info) }) else {
        return;
    };
    if begins {
        let run = Run::begin(Depth::Full);
        state().run_in_callback = Some(run);
        return;
    }
    let run = state().run_in_callback.take();
    run.into_iter().for_each(Run::record);
}

/// The body of `flarena_large_live_bytes`.
pub fn large_live_bytes() -> usize {
    recycler::live_bytes() as usize
}

fn record(collection: Collection, elapsed_us: u64) {
    RELEASED_BYTES.fetch_add(collection.released_bytes(), Relaxed);
    SPENT_US.fetch_add(elapsed_us, Relaxed);
    LIVE_AFTER_BYTES.store(collection.live_after_bytes, Relaxed);
    match collection.depth {
        Depth::Young => YOUNG_COLLECTIONS.fetch_add(1, Relaxed),
        Depth::Full => {
            LEAST_LIVE_AFTER_BYTES.fetch_min(collection.live_after_bytes, Relaxed);
            COLLECTIONS.fetch_add(1, Relaxed)
        }
    };
    state().policy.observe(collection, now_us());
}

pub fn total() -> Total {
    Total {
        collections: COLLECTIONS.load(Relaxed),
        released_bytes: RELEASED_BYTES.load(Relaxed),
        ms: SPENT_US.load(Relaxed) / 1000,
        live_after_bytes: LIVE_AFTER_BYTES.load(Relaxed),
    }
}

/// The collections since the last call, for one marker. `None` before the first collection.
pub fn take_since_last_marker() -> Option<Since> {
    let total = total();
    (total.collections + YOUNG_COLLECTIONS.load(Relaxed) > 0).then(|| Since {
        released_bytes: take_rise(&MARKED_BYTES, total.released_bytes),
        ms: take_rise(&MARKED_MS, total.ms),
        live_after_bytes: Some(LEAST_LIVE_AFTER_BYTES.swap(NONE, Relaxed))
            .filter(|&bytes| bytes != NONE),
    })
}

/// The rise of a total since the last call. If two threads mark at once, one of them gets it.
fn take_rise(marked: &AtomicU64, total: u64) -> u64 {
    total.saturating_sub(marked.fetch_max(total, Relaxed))
}

/// The child counts its own collections, and its own growth. It keeps what the policy has learned, but
/// no request. Never waits.
///
/// # Safety
/// Only in the child of a fork, before it has other threads.
pub unsafe fn after_fork_in_child() {
    for counter in [
        &COLLECTIONS,
        &YOUNG_COLLECTIONS,
        &RELEASED_BYTES,
        &SPENT_US,
        &MARKED_BYTES,
        &MARKED_MS,
    ] {
        counter.store(0, Relaxed);
    }
    LEAST_LIVE_AFTER_BYTES.store(NONE, Relaxed);
    // SAFETY: the child has no other thread, by this function's contract. Any mixture of the
    // policy's numbers is valid.
    let orphaned = unsafe { STATE.take_over_after_fork() };
    match orphaned.or_else(|| STATE.try_lock()) {
        Some(mut state) => state.forget_requests_of_parent(),
        // This thread holds the lock: a signal handler that forks has interrupted it.
        None => HAS_REQUESTS_OF_PARENT.store(true, Relaxed),
    }
}

fn now_us() -> u64 {
    time::now_us(ClockId::Monotonic)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Tests that use this module's state run one after another.
    static SERIAL: Mutex<()> = Mutex::new(());

    #[test]
    fn child_of_a_handler_that_interrupted_the_holder_does_not_wait_and_forgets_the_run_later() {
        let _serial = SERIAL.lock();
        STATE.lock().run_at_stage = Some(Run::begin(Depth::Full));
        let held = STATE.lock();
        // SAFETY: the other test of this module's state waits.
        unsafe { after_fork_in_child() };
        drop(held);
        assert!(state().run_at_stage.is_none());
    }

    #[test]
    fn each_collection_is_in_one_marker_and_no_part_of_a_millisecond_is_lost() {
        let _serial = SERIAL.lock();
        let note = |depth, live_after_bytes, released_bytes, elapsed_us| {
            let collection = Collection {
                depth,
                live_before_bytes: live_after_bytes + released_bytes,
                live_after_bytes,
                cost_us: elapsed_us,
            };
            record(collection, elapsed_us);
        };
        assert_eq!(take_since_last_marker(), None);
        note(Depth::Full, 100, 5 << 20, 1_600);
        note(Depth::Full, 200, 1 << 20, 1_600);
        note(Depth::Young, 50, 0, 0);
        let since = |released_bytes, ms, live_after_bytes| {
            Some(Since {
                released_bytes,
                ms,
                live_after_bytes,
            })
        };
        assert_eq!(take_since_last_marker(), since(6 << 20, 3, Some(100)));
        assert_eq!(take_since_last_marker(), since(0, 0, None));
        note(Depth::Full, 300, 0, 1_000);
        assert_eq!(take_since_last_marker(), since(0, 1, Some(300)));
        assert_eq!(total().collections, 3);
        // SAFETY: the other test of this module's state waits.
        unsafe { after_fork_in_child() };
        assert_eq!(take_since_last_marker(), None);
    }
}
