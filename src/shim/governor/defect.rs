//! A defect of ours in our own thread ends the thread's work, and not the program.
//!
//! A panic ends a process that was built as this library is. Its hook runs before, and does not return here.

use std::panic::{self, Location};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use super::{control, scheduling};
use crate::launch;
use crate::process::{procfs, thread};
use crate::recycler;
use crate::report::say;

/// Called by our thread, before it works. A forked child inherits the hook.
pub fn contain() {
    static CONTAINED: AtomicBool = AtomicBool::new(false);
    if !CONTAINED.swap(true, Relaxed) {
        contain_by(|place| rest(place));
    }
}

fn contain_by(rest: impl Fn(&Location<'_>) + Send + Sync + 'static) {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| match info.location() {
        Some(place) if thread::is_ours() => rest(place),
        _ => usual(info),
    }));
}

/// What is left of the thread: nothing of it can be trusted but its end.
fn rest(place: &Location<'_>) -> ! {
    const LOOK: Duration = Duration::from_millis(100);
    say::warn(format_args!(
        "an internal error ({}:{}) ended the thread that gives memory back; the program goes on and gives back by itself. Please report it",
        place.file(),
        place.line()
    ));
    launch::stop();
    recycler::set_governed(false);
    // Forks need not wait for it, and clients hear that nobody answers.
    thread::end_work();
    control::forget();
    loop {
        thread::sleep(LOOK);
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
            contain_by(|place| LINE.store(place.line(), Relaxed));
            panic!("in our thread");
        });
        assert!(ours.join().is_err());
        assert_eq!(LINE.swap(0, Relaxed), line!() - 3);
        let other = std::thread::spawn(|| panic!("elsewhere"));
        assert!(other.join().is_err());
        assert_eq!(LINE.load(Relaxed), 0);
        thread::after_fork_in_child();
    }
}
