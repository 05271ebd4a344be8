//! What fork and exit need. Registered once, by the constructor.
//!
//! Every lock of ours is held across a fork, so that the child, which has only the forking
//! thread, finds none of them taken by a thread that it does not have.

use crate::{backend, governor, identity, jemalloc, mark, recycler};

/// Registers the handlers of this process.
pub fn register() {
    if backend::is_jemalloc() {
        // Its own handlers are registered when it wakes, and must come before ours.
        jemalloc::wake();
    }
    // Found now: a child must not inherit a half-made one.
    let is_helper = identity::identity().is_helper;
    // SAFETY: the handlers are functions of this library, which is never unloaded.
    unsafe {
        libc::pthread_atfork(Some(prepare), Some(in_parent), Some(in_child));
        if mark::is_on() && !is_helper {
            libc::atexit(on_exit);
        }
    }
}

unsafe extern "C" fn prepare() {
    mark::lock_for_fork();
    recycler::fork_prepare();
}

unsafe extern "C" fn in_parent() {
    recycler::fork_parent();
    mark::unlock_after_fork();
}

unsafe extern "C" fn in_child() {
    recycler::fork_child();
    mark::unlock_after_fork();
    mark::after_fork_in_child();
    governor::after_fork_in_child();
}

extern "C" fn on_exit() {
    mark::event("exit");
}
