//! A defect of ours in our own thread ends the thread's work, and not the program.
//!
//! A panic ends a process that was built as this library is. Its hook runs before, and does not return here.

use std::panic::{self, PanicHookInfo};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use super::{control, pressure, scheduling};
use crate::launch;
use crate::process::{procfs, thread};
use crate::recycler;
use crate::report::say;

/// Called by our thread, before it works. A forked child inherits the hook.
pub fn contain() {
    static CONTAINED: AtomicBool = AtomicBool::new(false);
    // Debug builds end where a check of theirs fails.
    if !cfg!(debug_assertions) && !CONTAINED.load(Relaxed) {
        contain_by(|info| rest(info));
        CONTAINED.store(true, Relaxed);
    }
}

/// In the middle of the books nothing can be saved: whoever needs them would wait for ever.
fn contain_by(rest: impl Fn(&PanicHookInfo<'_>) + Send + Sync + 'static) {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if thread::is_ours() && !recycler::has_the_books() {
            rest(info);
        } else {
            usual(info);
        }
    }));
}

/// What is left of the thread: nothing of it can be trusted but its end. Where it is the last thread of the program, no
/// exit handler runs.
fn rest(info: &PanicHookInfo<'_>) -> ! {
    const LOOK: Duration = Duration::from_millis(100);
    let (file, line) = info
        .location()
        .map_or(("?", 0), |at| (at.file(), at.line()));
    say::warn(format_args!(
        "an internal error ({file}:{line}) ended the thread that gives memory back; the program goes on and gives back by itself. Please report it"
    ));
    launch::give_up();
    // Forks need not wait for it, and new clients hear that nobody answers.
    thread::end_work();
    control::forget();
    pressure::forget();
    loop {
        launch::asleep(|| thread::sleep(LOOK));
        if procfs::has_only_this_thread_left() {
            scheduling::exit_process();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    static LINE: AtomicU32 = AtomicU32::new(0);

    #[test]
    fn a_panic_is_contained_in_our_thread_and_no_other() {
        let ours = std::thread::spawn(|| {
            thread::enter();
            contain_by(|info| LINE.store(info.location().unwrap().line(), Relaxed));
            panic!("in our thread");
        });
        assert!(ours.join().is_err());
        assert_eq!(LINE.swap(0, Relaxed), line!() - 3);
        let other = std::thread::spawn(|| panic!("elsewhere"));
        assert!(other.join().is_err());
        assert_eq!(LINE.load(Relaxed), 0);
    }
}
