//! The governor's requests to Python's main thread: run a full garbage collection, and make the
//! memory pools of Arrow and PyTorch return their free memory.
//!
//! A request is a pending call of Python. It runs between two instructions of the main thread, and
//! not while that thread waits in C. At most one request of each kind is pending.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::garbage::{self, Depth, Party, Run};
use crate::launch;
use crate::python::{self, text, Attached, Call, Function, Object};
use flarena_sys::{config, thread, thread::helper, time};

/// The Python package collects at stages under the same condition.
const COLLECT: Function = Function {
    name: c"collect",
    text: text(concat!(
        "def collect(generation):\n",
        "    if may_collect():\n",
        "        gc.collect(generation)\n",
        "        return True\n\0",
    )),
};
/// The Python package does the same at a trim.
const RELEASE: Function = Function {
    name: c"release_pools",
    text: text(concat!(
        include_str!("../../python/flarena/_pools.py"),
        "\n\n",
        "def release_pools(_):\n",
        "    for release in RELEASES:\n",
        "        error = contained(lambda _: release(), None)\n",
        "        if error is not None:\n",
        "            return error\n\0",
    )),
};

/// One kind of request.
pub struct MainThreadRequest {
    call: Call,
    /// Requests that were handed over.
    requested: AtomicU64,
    /// Of those, the ones that have run.
    finished: AtomicU64,
}

pub static COLLECTION: MainThreadRequest = MainThreadRequest::new(collect);
pub static YOUNG_COLLECTION: MainThreadRequest = MainThreadRequest::new(collect_young);
pub static POOLS: MainThreadRequest = MainThreadRequest::new(release_pools);

impl MainThreadRequest {
    pub const fn new(call: Call) -> MainThreadRequest {
        MainThreadRequest {
            call,
            requested: AtomicU64::new(0),
            finished: AtomicU64::new(0),
        }
    }

    /// False if the process has no Python, if its queue is full, and while a request is pending.
    pub fn ask(&self) -> bool {
        if self.is_pending() {
            return false;
        }
        // First, because the call may finish before this thread goes on.
        self.requested.fetch_add(1, Relaxed);
        let is_queued = python::add_pending_call(self.call);
        if !is_queued {
            self.requested.fetch_sub(1, Relaxed);
        }
        is_queued
    }

    pub fn is_pending(&self) -> bool {
        self.finished.load(Relaxed) < self.requested.load(Relaxed)
    }

    /// Waits until no request is pending. False after this time, and once the governor is to end.
    pub fn wait(&self, patience: Duration) -> bool {
        let end = Instant::now() + patience;
        while self.is_pending() && Instant::now() < end && !launch::is_ending() {
            helper::wait_outside_work(|| thread::sleep(Duration::from_millis(5)));
        }
        !self.is_pending()
    }

    pub fn finish(&self) {
        self.finished.store(self.requested.load(Relaxed), Relaxed);
    }
}

/// The child of a fork has neither its parent's pending calls nor a governor.
pub fn after_fork_in_child() {
    COLLECTION.finish();
    YOUNG_COLLECTION.finish();
    POOLS.finish();
    super::sites::CHECK.finish();
}

/// The pending call of `COLLECTION`.
extern "C" fn collect(argument: Object) -> c_int {
    let status = run_collection(argument, Depth::Full);
    // The governor's policy may not have granted this one: a client's trim asks, too. Then there is
    // no request to finish.
    garbage::finish((Party::Governor, Depth::Full));
    COLLECTION.finish();
    status
}

/// The pending call of `YOUNG_COLLECTION`.
extern "C" fn collect_young(argument: Object) -> c_int {
    let status = run_collection(argument, Depth::Young);
    garbage::finish((Party::Governor, Depth::Young));
    YOUNG_COLLECTION.finish();
    status
}

fn run_collection(argument: Object, depth: Depth) -> c_int {
    // SAFETY: Python runs a pending call once, with the argument that it got.
    let python = unsafe { Attached::new(argument) };
    let readings = Run::begin(depth);
    let generation = match depth {
        Depth::Young => 1,
        Depth::Full => 2,
    };
    let ran = python.run(&COLLECT, generation);
    if ran.is_done {
        readings.end();
    }
    ran.status()
}

/// The pending call of `POOLS`. If the request has expired, the program is at work again and will
/// use its pools. If it has imported no such library, no Python code runs: its objects might start
/// Python's own collector.
extern "C" fn release_pools(argument: Object) -> c_int {
    // SAFETY: Python runs this call once, with the argument that it got.
    let python = unsafe { Attached::new(argument) };
    let has_pools = python.has_imported(&[c"pyarrow", c"torch"]);
    let is_useful = has_pools && POOLS_EXPIRE_MS.load(Relaxed) > now_ms();
    let status = if is_useful {
        python.run(&RELEASE, 0).status()
    } else {
        0
    };
    POOLS.finish();
    status
}

/// The time after which a release of the pools is no longer useful.
static POOLS_EXPIRE_MS: AtomicU64 = AtomicU64::new(0);

/// Requests a release of the pools, unless it comes later than `useful_for` or `FLARENA_POOLS` is
/// off.
pub fn ask_for_pools(useful_for: Duration) -> bool {
    if !config::settings().pools || POOLS.is_pending() {
        return false;
    }
    POOLS_EXPIRE_MS.store(now_ms() + useful_for.as_millis() as u64, Relaxed);
    POOLS.ask()
}

fn now_ms() -> u64 {
    time::now(rustix::time::ClockId::Monotonic).as_millis() as u64
}
