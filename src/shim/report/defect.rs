//! A defect of ours ends what it is in, and not the program, where that can be helped: a call of the program's to a
//! function that reports, or the library's own thread.
//!
//! Nothing unwinds but such a call, and there only to where it began (`contained`). Everywhere else, and where a thread
//! holds the recycler's lock, the hook of panics ends the process on the spot: before any frame is left, and any lock given
//! back over something half done. A malloc is such a place, and a trim, which has extents in hand without the lock; so is the constructor,
//! before which Rust's own hook holds. From a malloc within a call no panic gets out: its functions are C's to Rust.

use flarena_sys::errno;
use std::cell::Cell;
use std::fmt;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::report::log;
use flarena_recycler as recycler;
use flarena_sys::thread;
use flarena_sys::thread::cancellation::Cancellation;

thread_local! {
    /// The thread is in a call that a defect may end.
    static IN_CALL: Cell<bool> = const { Cell::new(false) };
}

/// A program that marks each round hears of it once.
static TOLD: AtomicBool = AtomicBool::new(false);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    OurThread,
    Call,
    Process,
}

/// Called once by the constructor, with what our own thread does instead of ending. Allocates nothing.
pub fn watch(rest: impl Fn(&PanicHookInfo<'_>) + Send + Sync + 'static) {
    // Debug builds end where a check of theirs fails.
    if !cfg!(debug_assertions) {
        set_hook(rest);
    }
}

fn set_hook(rest: impl Fn(&PanicHookInfo<'_>) + Send + Sync + 'static) {
    panic::set_hook(Box::new(move |info| {
        match what_ends(
            thread::is_ours(),
            IN_CALL.get(),
            recycler::lock_is_held_by_me(),
        ) {
            Ends::OurThread => rest(info),
            Ends::Call => {
                // A malloc within the call cannot be left: Rust comes here again, and then it is the process that ends.
                IN_CALL.set(false);
                if !TOLD.swap(true, Relaxed) {
                    let call = "a call to the library; the program goes on";
                    tell(info, call, log::warn);
                }
            }
            Ends::Process => {
                tell(info, "the program", log::fatal);
                // SAFETY: abort has no precondition; it ends the process.
                unsafe { libc::abort() }
            }
        }
    }));
}

/// In the middle of the books nothing can be saved: whoever needs them would wait for ever, or find them half written.
fn what_ends(ours: bool, in_call: bool, lock_is_held_by_me: bool) -> Ends {
    match (lock_is_held_by_me, ours, in_call) {
        (true, ..) => Ends::Process,
        (_, true, _) => Ends::OurThread,
        (_, _, true) => Ends::Call,
        _ => Ends::Process,
    }
}

/// One line that names the place.
pub fn tell(info: &PanicHookInfo<'_>, ended: &str, write: impl Fn(fmt::Arguments<'_>)) {
    let (file, line) = info
        .location()
        .map_or(("?", 0), |at| (at.file(), at.line()));
    write(format_args!(
        "an internal error ({file}:{line}) ended {ended}. Please report it"
    ));
}

/// Runs a call of the program's: a defect of ours in it is told, and the call answers `failed`, with `ENOTRECOVERABLE`.
pub fn contained<T>(failed: T, call: impl FnOnce() -> T) -> T {
    if cfg!(debug_assertions) {
        return call();
    }
    contain(call).unwrap_or(failed)
}

fn contain<T>(call: impl FnOnce() -> T) -> Option<T> {
    let _cancellation = Cancellation::put_off();
    let around = IN_CALL.replace(true);
    // Nobody sees what the call had in hand but through our locks, and it has nothing of the recycler's.
    let answer = panic::catch_unwind(AssertUnwindSafe(call));
    IN_CALL.set(around);
    answer
        .inspect_err(|_| errno::set(libc::ENOTRECOVERABLE))
        .ok()
}

/// For `tests/faults`, and in no build that is shipped: a defect in a call, and one elsewhere.
#[cfg(feature = "defect")]
pub fn provoke(stage: Option<&str>) {
    IN_CALL.set(stage != Some("defect elsewhere"));
    assert!(!stage.is_some_and(|stage| stage.starts_with("defect")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_panics_answers_none_and_one_around_it_goes_on() {
        let outer = contain(|| {
            assert_eq!(contain(|| -> u8 { panic!("within") }), None);
            assert!(IN_CALL.get(), "the outer call is still contained");
            7
        });
        assert_eq!(outer, Some(7));
        assert!(!IN_CALL.get());
    }

    #[test]
    fn a_defect_ends_the_smallest_thing_that_can_be_told_apart() {
        for (ours, in_call, books, ends) in [
            (true, false, false, Ends::OurThread),
            (true, true, false, Ends::OurThread),
            (false, true, false, Ends::Call),
            (false, false, false, Ends::Process),
            (true, true, true, Ends::Process),
            (false, true, true, Ends::Process),
        ] {
            let case = (ours, in_call, books);
            assert_eq!(what_ends(ours, in_call, books), ends, "{case:?}");
        }
    }
}
