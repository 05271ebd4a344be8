//! What the governor has paged out of an idle program, and the word to it that the program works again.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use flarena_shared::settings::Hibernate;

use crate::launch;
use flarena_sys::config;

/// Paged out and not yet brought back.
static BYTES: AtomicU64 = AtomicU64::new(0);
static WATCHED_MS: AtomicU64 = AtomicU64::new(0);
static IDLE_MS: AtomicU64 = AtomicU64::new(0);
/// The program marked a stage while some of it was out.
static MARKED: AtomicBool = AtomicBool::new(false);

/// Of what the process has in swap; `None` where nothing is ever paged out.
pub fn bytes(swap_bytes: Option<u64>) -> Option<u64> {
    let is_on = config::settings().hibernate != Hibernate::Off && launch::is_running();
    // What came back by the program's own faults was not counted.
    is_on.then(|| BYTES.load(Relaxed).min(swap_bytes.unwrap_or(u64::MAX)))
}

/// The time that the governor has watched, and how much of it the program was idle.
pub fn times() -> (Duration, Duration) {
    let read = |ms: &AtomicU64| Duration::from_millis(ms.load(Relaxed));
    (read(&WATCHED_MS), read(&IDLE_MS))
}

/// For the governor, as the two below.
pub fn note_time(passed: Duration, is_idle: bool) {
    let ms = passed.as_millis() as u64;
    WATCHED_MS.fetch_add(ms, Relaxed);
    IDLE_MS.fetch_add(if is_idle { ms } else { 0 }, Relaxed);
}

/// For the governor, which alone changes it.
pub fn set_bytes(bytes: u64) {
    BYTES.store(bytes, Relaxed);
}

/// The program marks a stage: it works, or is about to.
#[inline]
pub fn note_mark() {
    if BYTES.load(Relaxed) != 0 {
        MARKED.store(true, Relaxed);
    }
}

/// For the governor: whether the program has marked since the last call.
pub fn take_mark() -> bool {
    MARKED.swap(false, Relaxed)
}

/// The child has no governor, which would bring its pages back: its own faults do.
pub fn after_fork_in_child() {
    for number in [&BYTES, &WATCHED_MS, &IDLE_MS] {
        number.store(0, Relaxed);
    }
    MARKED.store(false, Relaxed);
}
