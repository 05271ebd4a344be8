//! How much of an idle program the governor has paged out, and a flag by which a marker wakes it.
//! The governor changes the numbers; a marker sets the flag.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use flarena_shared::settings::Hibernate;

use crate::launch;
use flarena_sys::config;

/// Paged out and not yet paged in again.
static BYTES: AtomicU64 = AtomicU64::new(0);
static WATCHED_MS: AtomicU64 = AtomicU64::new(0);
static IDLE_MS: AtomicU64 = AtomicU64::new(0);
/// The program wrote a marker while some of its memory was paged out.
static MARKED: AtomicBool = AtomicBool::new(false);

/// The bytes that the governor paged out; `None` if it never pages out.
pub fn bytes(swap_bytes: Option<u64>) -> Option<u64> {
    let is_on = config::settings().hibernate != Hibernate::Off && launch::is_running();
    // `BYTES` does not know about pages that the program's own faults brought back.
    is_on.then(|| BYTES.load(Relaxed).min(swap_bytes.unwrap_or(u64::MAX)))
}

/// The time that the governor has watched, and the part of it in which the program was idle.
pub fn times() -> (Duration, Duration) {
    let read = |ms: &AtomicU64| Duration::from_millis(ms.load(Relaxed));
    (read(&WATCHED_MS), read(&IDLE_MS))
}

/// Only the governor calls this.
pub fn note_time(passed: Duration, is_idle: bool) {
    let ms = passed.as_millis() as u64;
    WATCHED_MS.fetch_add(ms, Relaxed);
    IDLE_MS.fetch_add(if is_idle { ms } else { 0 }, Relaxed);
}

/// Only the governor calls this.
pub fn set_bytes(bytes: u64) {
    BYTES.store(bytes, Relaxed);
}

/// Called for each marker of the program: the program works, or is about to.
#[inline]
pub fn note_mark() {
    if BYTES.load(Relaxed) != 0 {
        MARKED.store(true, Relaxed);
    }
}

/// Whether the program has written a marker since the last call. Only the governor calls this.
pub fn take_mark() -> bool {
    MARKED.swap(false, Relaxed)
}

/// The child has no governor. Its own page faults bring its pages back.
pub fn after_fork_in_child() {
    for number in [&BYTES, &WATCHED_MS, &IDLE_MS] {
        number.store(0, Relaxed);
    }
    MARKED.store(false, Relaxed);
}
