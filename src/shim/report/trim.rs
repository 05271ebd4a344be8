//! Trim: everything that is free goes back to the system now, and the answer is the truth.

use flarena_sys::errno::SavedErrno;
use std::ffi::c_int;

use flarena_shared::stages::Stage;

use crate::choice::choose::{self, dispatch};
use crate::launch::{self, StartTrigger};
use crate::pools;
use crate::report::mark;
use flarena_recycler as recycler;
use flarena_sys::proc::procfs;
use flarena_sys::{owner, seccomp};

/// Memory was released, or nothing was there to release, or malloc is not ours.
const RELEASED: c_int = 1;
const NOTHING: c_int = 0;
const NOT_AVAILABLE: c_int = -1;

/// The body of `flarena_trim`. What it asks, backends and other libraries, may be refused by the system: that is nobody's errno.
pub fn trim() -> c_int {
    let _errno = SavedErrno::save();
    if !owner::owns_malloc() {
        return NOT_AVAILABLE;
    }
    launch::start_if_due(StartTrigger::Request);
    mark::event(Stage::BeforeTrim);
    let result = if release_all() { RELEASED } else { NOTHING };
    mark::event(Stage::AfterTrim);
    result
}

/// The body of `malloc_trim`, for which no error is defined.
pub fn malloc_trim(pad: usize) -> c_int {
    let _errno = SavedErrno::save();
    choose::choose();
    c_int::from(released(|| claims_release(pad)))
}

/// Returns everything that is free, whoever holds it: also allocators in other libraries.
pub fn release_all() -> bool {
    released(|| {
        pools::purge();
        claims_release(0)
    })
}

/// `malloc_trim` is a call of malloc's, which opens no file behind a seccomp list.
fn resident_pages() -> Option<u64> {
    seccomp::allows_common_calls().then(procfs::resident_pages)?
}

fn claims_release(pad: usize) -> bool {
    let recycled = recycler::trim() > 0;
    dispatch!(trim(pad)) == RELEASED || recycled
}

/// glibc answers "released" for pages that went back long ago, so the resident set decides; only
/// without `/proc` must the backend be believed.
fn released(release: impl FnOnce() -> bool) -> bool {
    let before = resident_pages();
    let claimed = release();
    match (before, resident_pages()) {
        (Some(before), Some(after)) => after < before,
        _ => claimed,
    }
}
