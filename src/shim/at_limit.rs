//! A large allocation for which no release makes room (`FLARENA_AT_LIMIT`): it is reported, and it fails if the user asked
//! for that.
//!
//! Without this the kernel kills a process of the control group when the program touches the block.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::OnceLock;
use std::time::Duration;

use flarena_shared::settings::AtLimit;
use flarena_sys::errno::SavedErrno;
use flarena_sys::{config, headroom, owner, time};
use rustix::time::ClockId;

use crate::memory_limit::{self, Shortage};

/// Smaller allocations are never refused. Many programs do not expect that they fail, and they leave little room.
const LEAST_BYTES: u64 = 1 << 20;
/// The time between two reports of one process. A program that never touches its blocks comes here again and again.
const PAUSE: Duration = Duration::from_secs(60);

/// Gets the bytes that were asked, the shortage, and whether the allocation fails.
type Report = fn(u64, Shortage, bool);

static REPORT: OnceLock<Report> = OnceLock::new();
/// Monotonic milliseconds. Zero: no report so far.
static NEXT_REPORT_AT: AtomicU64 = AtomicU64::new(0);

/// Called once by the constructor.
pub fn configure(report: Report) {
    let _ = REPORT.set(report);
}

/// The child makes its own reports.
pub fn after_fork_in_child() {
    NEXT_REPORT_AT.store(0, Relaxed);
}

/// True if [`refuses`] may be true.
#[inline]
pub fn may_refuse(bytes: usize) -> bool {
    bytes as u64 >= LEAST_BYTES && !headroom::may_keep(bytes as u64)
}

/// True if the call for so much new memory must fail. Asked before the call has an effect, and never for calloc, whose
/// pages a program may leave untouched.
#[inline]
pub fn refuses(bytes: usize) -> bool {
    may_refuse(bytes) && lacks_room(bytes as u64)
}

/// Not inlined, as a thread that allocates may have a small stack.
#[cold]
#[inline(never)]
fn lacks_room(bytes: u64) -> bool {
    let at_limit = config::settings().at_limit;
    let now = time::now(ClockId::Monotonic);
    let is_due = now.as_millis() as u64 >= NEXT_REPORT_AT.load(Relaxed);
    let fails = at_limit == AtLimit::Fail;
    let asks = fails || at_limit == AtLimit::Warn && is_due;
    if !asks || !owner::may_act() {
        return false;
    }
    let _errno = SavedErrno::save();
    // A block that fits is no reason for a warning.
    let Some(shortage) = memory_limit::shortage(bytes, fails) else {
        return false;
    };
    if is_due && let Some(report) = REPORT.get() {
        NEXT_REPORT_AT.store((now + PAUSE).as_millis() as u64, Relaxed);
        report(bytes, shortage, fails);
    }
    fails
}
