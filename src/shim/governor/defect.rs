//! A defect of ours in our own thread ends the thread's work, and not the program.
//!
//! The hook of panics (`report::defect`) comes here, and does not return.

use std::panic::PanicHookInfo;
use std::time::Duration;

use super::{descriptors, scheduling};
use crate::launch;
use crate::report::{defect, log};
use flarena_sys::{proc::procfs, thread};

/// What is left of the thread: nothing of it can be trusted but its end. Where it is the last
/// thread of the program, no exit handler runs.
pub fn rest(info: &PanicHookInfo<'_>) {
    const LOOK: Duration = Duration::from_millis(100);
    defect::tell(
        info,
        "the thread that gives memory back; the program goes on and gives back by itself",
        log::warn,
    );
    launch::give_up();
    // Forks need not wait for it, and new clients hear that nobody answers.
    thread::end_work();
    descriptors::close_all();
    loop {
        launch::asleep(|| thread::sleep(LOOK));
        if procfs::has_only_this_thread_left() {
            scheduling::exit_process();
        }
    }
}
