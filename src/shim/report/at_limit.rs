//! The report of a large allocation without room below the memory limit: one line on stderr and one marker. They are the
//! last words of a process that the kernel kills.
//!
//! Invariant: the calling thread has only entered malloc, so it holds no lock of this library or of the backend. So the
//! marker may wait for locks and allocate.

use flarena_shared::marker::MB;

use crate::memory_limit::Shortage;
use crate::report::panic::contain_call;
use crate::report::{log, mark, sites};

pub fn report(bytes: u64, shortage: Shortage, fails: bool) {
    contain_call((), || {
        let line = sites::line_of_thread();
        let (at, place) = line.as_deref().map_or(("", ""), |line| (" at ", line));
        let consequence = match fails {
            true => "the allocation fails",
            false => "the kernel kills a process if they are used; FLARENA_AT_LIMIT=fail makes this an error",
        };
        let Shortage {
            distance,
            spared_bytes,
        } = shortage;
        let left_bytes = distance.left_bytes();
        let [asked, left, limit, spared] =
            [bytes, left_bytes, distance.limit_bytes, spared_bytes].map(|bytes| bytes as f64 / MB);
        let spared = match spared_bytes {
            0 => String::new(),
            _ => format!(", {spared:.1} MB of them spared for the rest of the group,"),
        };
        log::warn(format_args!(
            "{asked:.1} MB asked{at}{place}, {left:.1} MB left below the memory limit of {limit:.1} MB{spared} after a release \
             of all free memory: {consequence}"
        ));
        mark::at_limit(bytes, left_bytes, line);
    });
}
