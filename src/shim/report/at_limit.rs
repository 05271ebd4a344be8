//! The report of a large allocation that cannot fit below the memory limit: one line on stderr and one marker. They are the
//! last words of a process that the kernel kills.
//!
//! Invariant: the calling thread has only entered malloc, so it holds no lock of this library or of the backend. So the
//! marker may wait for locks and allocate.

use flarena_shared::marker::MB;

use crate::memory_limit::Distance;
use crate::report::panic::contain_call;
use crate::report::{log, mark, sites};

pub fn report(bytes: u64, distance: Distance, fails: bool) {
    contain_call((), || {
        let line = sites::line_of_thread();
        let (at, place) = line.as_deref().map_or(("", ""), |line| (" at ", line));
        let consequence = match fails {
            true => "the allocation fails",
            false => "the kernel kills a process if they are used; FLARENA_AT_LIMIT=fail makes this an error",
        };
        let [asked, left, limit] =
            [bytes, distance.left_bytes(), distance.limit_bytes].map(|bytes| bytes as f64 / MB);
        log::warn(format_args!(
            "{asked:.1} MB asked{at}{place}, {left:.1} MB left below the memory limit of {limit:.1} MB after a release of \
             all free memory: {consequence}"
        ));
        mark::at_limit(bytes, distance.left_bytes(), line);
    });
}
