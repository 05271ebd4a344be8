//! Limits the damage of a panic in this library. A call that reports fails, or the governor stops;
//! the program continues. A panic anywhere else ends the process.
//!
//! Code inside [`contain`] may unwind, up to that entry and no further. The panic hook aborts in
//! all other places before any frame is left and any lock released: in malloc and trim, which may
//! hold half-updated extents, in the fork handlers, and where the thread holds the recycler's lock.
//! (A malloc inside an entry is such a place too: a panic cannot leave its `extern "C"` function.)
//! Before the constructor installs the hook, Rust's own hook applies.

use std::cell::Cell;
use std::fmt::Arguments;
use std::panic::{catch_unwind, set_hook, AssertUnwindSafe, PanicHookInfo};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::report::log;
use flarena_recycler as recycler;
use flarena_sys::errno;
use flarena_sys::thread::cancellation::Cancellation;

/// Code that may panic without ending the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The program called a function that reports: a marker, the statistics, the allocation sites.
    Call,
    /// The governor's thread.
    Governor,
}

thread_local! {
    /// The innermost entry of the thread.
    static ENTRY: Cell<Option<Entry>> = const { Cell::new(None) };
}

/// A program that writes many markers logs one failed call.
static CALL_LOGGED: AtomicBool = AtomicBool::new(false);

/// Called once by the constructor. Debug builds keep Rust's hook and end at each panic.
pub fn install_hook() {
    if !cfg!(debug_assertions) {
        set_hook(Box::new(on_panic));
    }
}

fn on_panic(info: &PanicHookInfo<'_>) {
    // A second panic while this one unwinds ends the process.
    let ended = match container(ENTRY.take(), recycler::lock_is_held_by_me()) {
        Some(Entry::Call) if CALL_LOGGED.swap(true, Relaxed) => return,
        Some(Entry::Call) => "a call to the library; the program continues",
        Some(Entry::Governor) => "the governor's thread; the program continues without it",
        None => {
            log_panic(info, "the program", log::fatal);
            // SAFETY: abort has no precondition; it ends the process.
            unsafe { libc::abort() }
        }
    };
    log_panic(info, ended, log::warn);
}

/// The entry that contains the panic; `None`: the process ends. A thread that holds the recycler's lock leaves its state
/// half written.
fn container(entry: Option<Entry>, holds_recycler_lock: bool) -> Option<Entry> {
    entry.filter(|_| !holds_recycler_lock)
}

/// Logs one line with the file and line of the panic. Allocates nothing.
fn log_panic(info: &PanicHookInfo<'_>, ended: &str, log: impl Fn(Arguments<'_>)) {
    let (file, line) = info
        .location()
        .map_or(("?", 0), |at| (at.file(), at.line()));
    log(format_args!(
        "an internal error ({file}:{line}) ended {ended}. Please report it"
    ));
}

/// Runs a call of the program. If it panics, returns `failed` with errno `ENOTRECOVERABLE`.
pub fn contain_call<T>(failed: T, call: impl FnOnce() -> T) -> T {
    contain(Entry::Call, call).unwrap_or_else(|| {
        errno::set(libc::ENOTRECOVERABLE);
        failed
    })
}

/// Runs code that may panic; `None` if it did. Debug builds end the process instead.
pub fn contain<T>(entry: Entry, code: impl FnOnce() -> T) -> Option<T> {
    if cfg!(debug_assertions) {
        return Some(code());
    }
    catch(entry, code)
}

fn catch<T>(entry: Entry, code: impl FnOnce() -> T) -> Option<T> {
    // The end of a cancelled thread unwinds too, and `catch_unwind` would end the process.
    let _cancellation = Cancellation::put_off();
    let outer = ENTRY.replace(Some(entry));
    // Unwind safe: other threads reach the data of the entry only through this library's locks.
    let result = catch_unwind(AssertUnwindSafe(code));
    ENTRY.set(outer);
    result.ok()
}

/// Panics for tests/faults, at the stages that start with "defect". Releases do not contain it.
#[cfg(feature = "defect")]
pub mod provoke {
    use super::{recycler, AtomicBool, Relaxed, ENTRY};

    static IN_GOVERNOR: AtomicBool = AtomicBool::new(false);

    pub fn at_stage(stage: Option<&str>) {
        match stage {
            Some("defect") => {}
            Some("defect elsewhere") => ENTRY.set(None),
            Some("defect with the lock") => recycler::panic_with_lock(),
            Some("defect in the governor") => return IN_GOVERNOR.store(true, Relaxed),
            _ => return,
        }
        panic!("provoked at a stage");
    }

    pub fn in_governor() {
        assert!(!IN_GOVERNOR.load(Relaxed), "provoked in the governor");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_in_nested_call_leaves_outer_call_contained() {
        let outer = catch(Entry::Governor, || {
            assert_eq!(catch(Entry::Call, || -> u8 { panic!("within") }), None);
            assert_eq!(ENTRY.get(), Some(Entry::Governor));
            7
        });
        assert_eq!(outer, Some(7));
        assert_eq!(ENTRY.get(), None);
    }

    #[test]
    fn panic_ends_the_process_outside_entries_and_under_the_recyclers_lock() {
        for (entry, holds_recycler_lock, expected) in [
            (Some(Entry::Call), false, Some(Entry::Call)),
            (Some(Entry::Governor), false, Some(Entry::Governor)),
            (None, false, None),
            (Some(Entry::Call), true, None),
            (Some(Entry::Governor), true, None),
            (None, true, None),
        ] {
            let case = (entry, holds_recycler_lock);
            assert_eq!(container(entry, holds_recycler_lock), expected, "{case:?}");
        }
    }

    #[test]
    fn contained_call_that_returns_keeps_its_result() {
        assert_eq!(contain_call(-1, || 3), 3);
    }
}
