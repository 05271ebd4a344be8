//! The governor's requests to Python's main thread: run a full garbage collection, and make the
//! memory pools of Arrow and PyTorch return their free memory.
//!
//! A request is a pending call of Python. It runs between two instructions of the main thread, and
//! not while that thread waits in C.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::garbage::{self, Depth, Party, Run};
use crate::python::{text, Attached, Function, MainThreadRequest, Ran};
use flarena_sys::{config, time};
use rustix::time::ClockId;

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
        include_str!("../python/_pools.py"),
        "\n\n",
        "def release_pools(_):\n",
        "    for release in RELEASES:\n",
        "        error = contained(lambda _: release(), None)\n",
        "        if error is not None:\n",
        "            return error\n\0",
    )),
};

pub static COLLECTION: MainThreadRequest =
    MainThreadRequest::new(|python| collect(python, Depth::Full));
pub static YOUNG_COLLECTION: MainThreadRequest =
    MainThreadRequest::new(|python| collect(python, Depth::Young));
pub static POOLS: MainThreadRequest = MainThreadRequest::new(release_pools);

/// The request for a collection of this depth.
pub fn collection(depth: Depth) -> &'static MainThreadRequest {
    match depth {
        Depth::Young => &YOUNG_COLLECTION,
        Depth::Full => &COLLECTION,
    }
}

/// The pending call of both collections.
fn collect(python: &Attached, depth: Depth) -> Ran {
    let readings = Run::begin(depth);
    let generation = match depth {
        Depth::Young => 1,
        Depth::Full => 2,
    };
    let ran = python.run(&COLLECT, generation);
    if ran == Ran::Done {
        readings.end();
    }
    // The governor's policy may not have granted this one: a client's trim asks, too. Then there is
    // no request to finish.
    garbage::finish((Party::Governor, depth));
    collection(depth).finish();
    ran
}

/// The pending call of `POOLS`. If the request has expired, the program is at work again and will
/// use its pools. If it has imported no such library, no Python code runs: its objects might start
/// Python's own collector.
fn release_pools(python: &Attached) -> Ran {
    let has_pools = python.has_imported(&[c"pyarrow", c"torch"]);
    let is_useful = has_pools && POOLS_EXPIRE_US.load(Relaxed) > time::now_us(ClockId::Monotonic);
    let ran = if is_useful {
        python.run(&RELEASE, 0)
    } else {
        Ran::NotDone
    };
    POOLS.finish();
    ran
}

/// The time after which a release of the pools is no longer useful.
static POOLS_EXPIRE_US: AtomicU64 = AtomicU64::new(0);

/// Requests a release of the pools, unless it comes later than `useful_for` or `FLARENA_POOLS` is
/// off.
pub fn ask_for_pools(useful_for: Duration) -> bool {
    if !config::settings().pools || POOLS.is_pending() {
        return false;
    }
    let expire = time::now(ClockId::Monotonic) + useful_for;
    POOLS_EXPIRE_US.store(expire.as_micros() as u64, Relaxed);
    POOLS.ask()
}
