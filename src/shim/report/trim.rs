//! Trim: returns all free memory to the system, and reports whether the resident set shrank.

use flarena_sys::errno::SavedErrno;
use std::ffi::c_int;

use flarena_shared::stages::Stage;

use crate::backends::choose::{self, dispatch};
use crate::launch::{self, StartTrigger};
use crate::report::mark;
use flarena_recycler as recycler;
use flarena_sys::proc::procfs;
use flarena_sys::{owner, seccomp};

/// The results of `flarena_trim`. The last: another library serves malloc.
const RELEASED: c_int = 1;
const NOTHING: c_int = 0;
const NOT_AVAILABLE: c_int = -1;

/// The body of `flarena_trim`. It keeps errno, because calls of the backends may fail inside.
pub fn trim() -> c_int {
    let _errno = SavedErrno::save();
    if !owner::owns_malloc() {
        return NOT_AVAILABLE;
    }
    launch::start_if_due(StartTrigger::Request);
    mark::event(Stage::BeforeTrim);
    let result = if release(0) { RELEASED } else { NOTHING };
    mark::event(Stage::AfterTrim);
    result
}

/// The body of `malloc_trim`. It keeps errno, because no error is defined for it.
pub fn malloc_trim(pad: usize) -> c_int {
    let _errno = SavedErrno::save();
    choose::choose();
    c_int::from(release(pad))
}

/// `None` behind a seccomp filter: a malloc call must not open a file then.
fn resident_bytes() -> Option<u64> {
    seccomp::allows_common_calls().then(procfs::resident_bytes)?
}

/// Releases all free memory, but keeps `pad` bytes if the backend supports it. glibc reports "released" also for pages that it
/// returned long ago, so the resident set decides. Without `/proc` the answers of recycler and backend are used.
pub fn release(pad: usize) -> bool {
    let before = resident_bytes();
    let is_recycled = recycler::trim() > 0;
    let is_claimed = dispatch!(trim(pad)) == RELEASED || is_recycled;
    match (before, resident_bytes()) {
        (Some(before), Some(after)) => after < before,
        _ => is_claimed,
    }
}
